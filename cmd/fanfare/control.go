package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// controls say what pause, resume and cancel do.
var controls = map[string]struct {
	short, done string
	do          func(*client.Client, context.Context, fanfare.Scope, string) error
}{
	"pause":  {"Pause sending", "paused", (*client.Client).Pause},
	"resume": {"Resume sending", "resumed", (*client.Client).Resume},
	"cancel": {"Cancel messages that have not been sent", "cancelled", (*client.Client).Cancel},
}

func (c *cli) controlCommand(what string) *cobra.Command {
	var all bool
	var channel, broadcast, reason string
	control := controls[what]
	command := &cobra.Command{
		Use: what + " --all | --service NAME | --channel NAME | --broadcast EVENT", Short: control.short,
		Long: control.short + `.

The command applies to everything, to one service, to one of its channels, or to the
broadcast of one event. It remains in effect after a restart.`,
		Example: fmt.Sprintf(`  fanfare %[1]s --broadcast evt-20261120-1001 --reason "wrong text"
  fanfare %[1]s --channel news/mail
  fanfare %[1]s --service news
  fanfare %[1]s --all`, what),
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			scope, err := scopeOf(all, c.service, channel, broadcast)
			if err != nil {
				return err
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			if err := control.do(api, command.Context(), scope, reason); err != nil {
				return err
			}
			if !c.json {
				fmt.Fprintln(c.out, strings.TrimSpace(control.done+" "+string(scope.Kind)+" "+scope.Name))
			}
			return nil
		},
	}
	command.Flags().BoolVar(&all, "all", false, "everything")
	command.Flags().StringVar(&channel, "channel", "", "channel, as SERVICE/CHANNEL, or its name together with --service")
	command.Flags().StringVar(&broadcast, "broadcast", "", "id of the event that triggered the broadcast")
	command.Flags().StringVar(&reason, "reason", "", "reason, shown by fanfare status and in traces")
	command.MarkFlagsMutuallyExclusive("all", "channel", "broadcast")
	return command
}

// scopeOf turns the flags into a scope: the narrowest one that they name.
func scopeOf(all bool, service, channel, broadcast string) (fanfare.Scope, error) {
	switch {
	case all && service != "":
		return fanfare.Scope{}, &fanfare.Error{Code: fanfare.Invalid, Message: "--all and --service cannot be combined"}
	case all:
		return fanfare.Scope{Kind: fanfare.ScopeAll}, nil
	case broadcast != "":
		return fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: broadcast}, nil
	case channel != "":
		if service != "" && !strings.Contains(channel, "/") {
			channel = service + "/" + channel
		}
		return fanfare.Scope{Kind: fanfare.ScopeChannel, Name: channel}, nil
	case service != "":
		return fanfare.Scope{Kind: fanfare.ScopeService, Name: service}, nil
	}
	return fanfare.Scope{}, &fanfare.Error{Code: fanfare.Invalid, Message: "the scope is missing", Hint: "use --all, --service, --channel or --broadcast"}
}
