package main

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
)

// completionTime is how long a shell waits for names from the server; without an
// answer it completes nothing, and says nothing.
const (
	completionTime  = 400 * time.Millisecond
	completionNames = 200
)

// names lists the first members of a list on the running server, in silence.
func (c *cli) names(ctx context.Context, path, plural string) []string {
	api, err := c.connect()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	list, _, err := client.Page[struct{ Name, ID string }](ctx, api, path, plural, nil, "", completionNames)
	if err != nil {
		return nil
	}
	var names []string
	for _, one := range list {
		if name := one.Name + one.ID; name != "" { // it has the one or the other
			names = append(names, name)
		}
	}
	return names
}

// completed is what a shell is told: names that begin so, and never files.
func completed(names []string, begun string) ([]string, cobra.ShellCompDirective) {
	names = slices.DeleteFunc(names, func(name string) bool { return !strings.HasPrefix(name, begun) })
	return names, cobra.ShellCompDirectiveNoFileComp
}

// completeNoun completes the names of a noun, and before them that of what it
// belongs to. Without self the noun's own names are not asked for. Behind the
// name, put takes a file.
func (c *cli) completeNoun(n *noun, self bool) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if n.of != "" && len(args) == 0 {
			return completed(c.names(command.Context(), "/v1/"+n.of+"s", n.of+"s"), begun)
		}
		own := n.args(0)
		switch {
		case !self:
			return nil, cobra.ShellCompDirectiveNoFileComp
		case command.Name() == "put" && len(args) > own:
			return nil, cobra.ShellCompDirectiveDefault
		case command.Name() == "get" && len(args) > own:
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		path, _ := n.collection(args)
		return completed(c.names(command.Context(), path, n.plural), begun)
	}
}

// completeFirst completes the first argument with the names of a list; what
// follows is a file.
func (c *cli) completeFirst(plural string) cobra.CompletionFunc {
	return func(command *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return completed(c.names(command.Context(), "/v1/"+url.PathEscape(plural), plural), begun)
	}
}

// fixed are the values of flags that are the same on every server.
var fixed = map[string][]string{
	"lane": {"urgent", "normal", "bulk"}, "scope": {"admin", "publish", "subscribe", "read", "secrets", "approve", "sessions", "work"}, "durability": {"fsync", "relaxed"},
	"log-level": {"debug", "info", "warn", "error"}, "log-format": {"text", "json"}, "access-log": {"off", "errors", "all"},
	"state": {"pending", "deferred", "accepted", "delivered", "failed", "expired", "cancelled", "suppressed"},
}

// completeAll completes the flags of all commands.
func (c *cli) completeAll(command *cobra.Command) {
	c.completeFlags(command)
	for _, sub := range command.Commands() {
		c.completeAll(sub)
	}
}

// completeFlags completes the values of the flags of a command that name
// something on the server, or one of a few words.
func (c *cli) completeFlags(command *cobra.Command) {
	for _, n := range []struct{ flag, plural string }{{"topic", "topics"}, {"template", "templates"}, {"channel", "channels"}, {"service", "services"}} {
		if command.Flags().Lookup(n.flag) == nil && command.PersistentFlags().Lookup(n.flag) == nil {
			continue
		}
		_ = command.RegisterFlagCompletionFunc(n.flag, func(command *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completed(c.names(command.Context(), "/v1/"+n.plural, n.plural), begun)
		}) // it fails where another function is registered already
	}
	for flag, values := range fixed {
		if command.Flags().Lookup(flag) == nil {
			continue
		}
		if flag == "state" && command.HasParent() && command.Parent().Name() == "subscription" {
			values = []string{"active", "paused", "ended"}
		}
		_ = command.RegisterFlagCompletionFunc(flag, func(_ *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
			return completed(slices.Clone(values), begun)
		})
	}
}
