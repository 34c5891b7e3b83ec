package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// A noun is a kind of thing that commands list, show, change and delete: one word
// for each, NOUN VERB.
type noun struct {
	name, plural string
	path         string // of the list; %s is the thing that it belongs to
	of           string // noun of that thing, or ""
	short        string
	columns      []string // fields that a list shows
	filters      []string // parameters of the query that a list takes
	must         string   // the one of them without which there is no list
	verbs        string   // of list, get, put, delete
	sample       string   // a name for the examples
	body         string   // for the example of put
	about        string   // of put
}

// nouns are the resources that have a command. `fanfare apply` configures all of them at once.
var nouns = []noun{
	{name: "service", plural: "services", path: "/v1/services", short: "Manage services", columns: []string{"name", "title"},
		verbs: "list get put delete", sample: "earthquakes", body: `{"title":"Earthquakes"}`},
	{name: "topic", plural: "topics", path: "/v1/topics", short: "Manage topics", columns: []string{"name", "title", "lane", "template", "rules"},
		verbs: "list get put delete", sample: "earthquakes", body: `{"template":"quake"}`, about: "If the file contains a list of rules, put replaces all rules of the topic with it.\nOtherwise, the rules are unchanged."},
	{name: "rule", plural: "rules", path: "/v1/topics/%s/rules", of: "topic", short: "Manage the rules of a topic", columns: []string{"name", "title", "when", "params", "template"},
		verbs: "list get put delete", sample: "near", body: `{"when":"event.mag >= sub.min","params":{"min":"number"}}`, about: "A new rule is added at the end; an existing rule keeps its position."},
	{name: "template", plural: "templates", path: "/v1/templates", short: "Manage templates", columns: []string{"name", "version", "state", "subject"},
		filters: []string{"state"}, verbs: "list get put delete", sample: "quake", body: `{"subject":"{{ event.place }}","text":"{{ event.mag }}"}`, about: "put immediately publishes the change as a new version. To prepare a change without\npublishing it, use draft."},
	{name: "channel", plural: "channels", path: "/v1/channels", short: "Manage channels", columns: []string{"name", "driver", "relay", "path", "from", "rate", "connections"},
		verbs: "list get put delete", sample: "mail", body: `{"driver":"smtp","relay":"127.0.0.1:25","from":"News <news@example.org>"}`, about: "The file cannot contain a password. Use password_env or password_file."},
	{name: "subscriber", plural: "subscribers", path: "/v1/subscribers", short: "Manage subscribers", columns: []string{"id", "addresses", "locale", "time_zone"},
		filters: []string{"address"}, verbs: "list get put delete", sample: "ada", body: `{"addresses":[{"kind":"mail","address":"ada@example.com"}],"locale":"en"}`, about: "If you remove an address, its subscriptions end."},
	{name: "subscription", plural: "subscriptions", path: "/v1/subscriptions", short: "Manage subscriptions", columns: []string{"id", "title", "topic", "channel", "to", "filter", "rule", "params", "cadence", "state"},
		filters: []string{"topic", "channel", "subscriber", "state"}, verbs: "list get put delete", sample: "ada-alaska", body: `{"topic":"earthquakes","channel":"mail","to":"ada@example.com"}`,
		about: "After delete returns, no more messages are sent for the subscription."},
	{name: "event", plural: "events", path: "/v1/events", short: "Show events and their broadcasts", columns: []string{"event", "kind", "topic", "state", "lane", "messages", "deliveries"},
		filters: []string{"topic", "state", "lane"}, verbs: "list get", sample: "evt-20261120-1000"},
	{name: "message", plural: "messages", path: "/v1/messages", short: "Show direct messages", columns: []string{"id", "state", "channel", "recipients", "reference", "counts"},
		filters: []string{"reference"}, must: "reference", verbs: "list get", sample: "msg-20261120-2000"},
	{name: "worker", plural: "workers", path: "/v1/workers", short: "Manage workers and show their instances", columns: []string{"name", "title", "sessions", "queued", "running", "wanted", "instances"},
		verbs: "list get put delete", sample: "pricing", body: `{"title":"Prices of orders"}`, about: "get shows the connected instances, and why none can start."},
	{name: "session", plural: "sessions", path: "/v1/sessions", short: "Open, use and close sessions", columns: []string{"id", "worker", "kind", "name", "state", "queued", "running", "requests", "responses", "faults"},
		filters: []string{"state", "worker"}, verbs: "list get", sample: "ses-17"},
	{name: "agent", plural: "agents", path: "/v1/agents", short: "List the agents that start instances of workers", columns: []string{"name", "host", "version", "cores", "max_instances", "workers", "connected_at"},
		verbs: "list"},
	{name: "delivery", plural: "deliveries", path: "/v1/deliveries", short: "Show a delivery and its attempts", verbs: "get", sample: "dlv-20261120-40026-0"},
}

func (c *cli) nounCommand(n *noun) *cobra.Command {
	command := &cobra.Command{Use: n.name, Short: n.short}
	if n.about != "" {
		command.Long = n.short + ".\n\n" + n.about
	}
	for _, verb := range strings.Fields(n.verbs) {
		switch verb {
		case "list":
			command.AddCommand(c.nounList(n))
		case "get":
			command.AddCommand(c.nounGet(n))
		case "put":
			command.AddCommand(c.nounPut(n))
		case "delete":
			command.AddCommand(c.nounDelete(n))
		}
	}
	if n.name == "subscriber" {
		command.AddCommand(c.personExport(n), c.personMerge(n), c.personErase(n))
	}
	if n.name == "session" {
		command.AddCommand(c.sessionVerbs()...)
	}
	if n.name == "template" {
		command.AddCommand(c.templateDraft(), c.templatePublish(), c.templateVersions(), c.templateDiff(), c.templateDiscard(), c.templateLint())
	}
	if n.name == "subscription" {
		command.AddCommand(c.subscriptionPause(n), c.subscriptionResume(n))
	}
	return command
}

// connectFor returns a client that names the service that is meant; services
// themselves belong to none.
func (c *cli) connectFor(n *noun) (*client.Client, error) {
	api, err := c.connect()
	if err == nil && n.name == "service" {
		api = api.ForService("")
	}
	return api, err
}

// owner is the first argument, of a noun that belongs to something.
func (n *noun) owner() string {
	if n.of == "" {
		return ""
	}
	return " " + strings.ToUpper(n.of)
}

// collection is the path of the list, without the arguments that it took.
func (n *noun) collection(args []string) (path string, rest []string) {
	if n.of == "" {
		return n.path, args
	}
	return fmt.Sprintf(n.path, url.PathEscape(args[0])), args[1:]
}

// example is a command line with the sample names.
func (n *noun) example(verb, rest string) string {
	line := "  fanfare " + n.name + " " + verb
	if n.of != "" {
		line += " earthquakes"
	}
	return line + rest
}

func (n *noun) args(more int) int {
	if n.of != "" {
		more++
	}
	return more
}

func (c *cli) nounList(n *noun) *cobra.Command {
	var limit int
	var cursor string
	filters := map[string]*string{}
	command := &cobra.Command{
		Use: "list" + n.owner(), Short: "List " + n.plural, Example: n.example("list", ""), Args: cobra.ExactArgs(n.args(0)),
		ValidArgsFunction: c.completeNoun(n, false),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connectFor(n)
			if err != nil {
				return err
			}
			path, _ := n.collection(args)
			query := url.Values{}
			for name, value := range filters {
				if *value != "" {
					query.Set(name, *value)
				}
			}
			list, next, err := client.Page[json.RawMessage](command.Context(), api, path, n.plural, query, cursor, limit)
			for err == nil && next != "" && len(list) < limit { // a page may be short although more follows
				var more []json.RawMessage
				more, next, err = client.Page[json.RawMessage](command.Context(), api, path, n.plural, query, next, limit-len(list))
				list = append(list, more...)
			}
			if err != nil {
				return err
			}
			return c.printNouns(n, list, next)
		},
	}
	flags := command.Flags()
	flags.IntVar(&limit, "limit", 100, "number of results, at most 1000")
	flags.StringVar(&cursor, "cursor", "", "cursor of the next page, as printed by the previous call")
	for _, name := range n.filters {
		filters[name] = new(string)
		flags.StringVar(filters[name], name, "", "show only results with this "+name)
	}
	if n.must != "" {
		command.Example += " --" + n.must + " order-17"
		if err := command.MarkFlagRequired(n.must); err != nil {
			panic(err) // it is one of the filters
		}
	}
	return command
}

func (c *cli) printNouns(n *noun, list []json.RawMessage, next string) error {
	if c.json {
		if list == nil {
			list = []json.RawMessage{}
		}
		page := map[string]any{n.plural: list}
		if next != "" {
			page["next"] = next
		}
		return c.printJSON(page)
	}
	if len(list) == 0 {
		fmt.Fprintln(c.out, "no "+n.plural)
		return nil
	}
	t := c.newTable()
	fmt.Fprintln(t, strings.ToUpper(strings.ReplaceAll(strings.Join(n.columns, "\t"), "_", " ")))
	for _, one := range list {
		var fields map[string]any
		if err := json.Unmarshal(one, &fields); err != nil {
			return err
		}
		cells := make([]string, len(n.columns))
		for i, name := range n.columns {
			cells[i] = cellOf(fields[name])
		}
		fmt.Fprintln(t, strings.Join(cells, "\t"))
	}
	t.Flush()
	if next != "" {
		fmt.Fprintf(c.out, "more: --cursor %s\n", next)
	}
	return nil
}

// cellOf writes a value as people read it.
func cellOf(v any) string {
	switch x := v.(type) {
	case nil:
		return ""
	case string:
		if at, err := time.Parse(time.RFC3339, x); err == nil {
			return at.Local().Format(time.DateTime)
		}
		return terminal.Short(x)
	case []any:
		parts := make([]string, len(x))
		for i, one := range x {
			if object, ok := one.(map[string]any); ok { // by what tells it apart
				for _, name := range []string{"address", "name", "id"} {
					if object[name] != nil {
						one = object[name]
						break
					}
				}
			}
			parts[i] = cellOf(one)
		}
		return strings.Join(parts, ", ")
	}
	text, _ := json.Marshal(v) // it came as JSON
	return terminal.Short(string(text))
}

func (c *cli) nounGet(n *noun) *cobra.Command {
	return &cobra.Command{
		Use: "get" + n.owner() + " NAME", Short: "Show one " + n.name + " as JSON", Example: n.example("get", " "+n.sample), Args: cobra.ExactArgs(n.args(1)),
		ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connectFor(n)
			if err != nil {
				return err
			}
			path, rest := n.collection(args)
			var one json.RawMessage
			if _, err := api.Call(command.Context(), http.MethodGet, path+"/"+url.PathEscape(rest[0]), nil, nil, &one); err != nil {
				return err
			}
			return c.printJSON(one)
		},
	}
}

func (c *cli) nounPut(n *noun) *cobra.Command {
	return &cobra.Command{
		Use: "put" + n.owner() + " NAME FILE|-", Short: "Create or change one " + n.name + " from a JSON or YAML file",
		Example: n.example("put", " "+n.sample+" "+n.name+".yaml") + "\n  echo '" + n.body + "' |\n  " + n.example("put", " "+n.sample+" -"), Args: cobra.ExactArgs(n.args(2)),
		ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			path, rest := n.collection(args)
			body, err := c.readObject(rest[1])
			if err != nil {
				return err
			}
			api, err := c.connectFor(n)
			if err != nil {
				return err
			}
			var one json.RawMessage
			created, err := api.Call(command.Context(), http.MethodPut, path+"/"+url.PathEscape(rest[0]), nil, body, &one)
			if err != nil {
				return inFile(rest[1], err)
			}
			if c.json {
				return c.printJSON(one)
			}
			what := "changed"
			if created {
				what = "created"
			}
			fmt.Fprintf(c.out, "%s %s %s\n", n.name, rest[0], what)
			var put client.Subscribed
			if n.name == "subscription" && json.Unmarshal(one, &put) == nil && put.Matching != nil && !put.Matching.Indexed {
				fmt.Fprintf(c.err, "evaluating the condition takes about %s per event: %s\n", time.Duration(put.Matching.NsPerEvent), put.Matching.Reason)
			}
			return nil
		},
	}
}

// readObject reads a file with one object, JSON or YAML, as JSON.
func (c *cli) readObject(name string) (json.RawMessage, error) {
	text, err := c.readInput(name)
	if err != nil {
		return nil, err
	}
	if json.Valid(text) {
		return text, nil
	}
	if extension := strings.ToLower(filepath.Ext(name)); extension == ".json" {
		_, err := oneValue(text)
		return nil, inFile(name, err)
	}
	body, err := yaml.YAMLToJSON(text)
	if err != nil {
		return nil, inFile(name, &fanfare.Error{Code: fanfare.Invalid, Message: strings.TrimSpace(yaml.FormatError(err, false, false))})
	}
	return body, nil
}

func (c *cli) nounDelete(n *noun) *cobra.Command {
	return &cobra.Command{
		Use: "delete" + n.owner() + " NAME...", Short: "Delete " + n.plural + " (missing ones are ignored)", Example: n.example("delete", " "+n.sample), Args: cobra.MinimumNArgs(n.args(1)),
		ValidArgsFunction: c.completeNoun(n, true),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connectFor(n)
			if err != nil {
				return err
			}
			path, rest := n.collection(args)
			for _, name := range slices.Compact(rest) {
				if _, err := api.Call(command.Context(), http.MethodDelete, path+"/"+url.PathEscape(name), nil, nil, nil); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
