package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

// A cli is what all commands share: the global flags and the three streams.
type cli struct {
	server, key, service, dataDir string
	json                          bool
	keyFrom                       string // where the key was found, for who is told that nobody knows it

	in        io.Reader
	out, err  io.Writer
	lookupEnv func(string) (string, bool)
}

const (
	defaultServer  = "http://127.0.0.1:8085"
	defaultDataDir = "./fanfare-data"
)

// run executes one command line and returns the exit code.
func (c *cli) run(ctx context.Context, args []string) int {
	root := c.root()
	root.SetArgs(args)
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	err := unknownVerb(root, args)
	if err == nil {
		err = unknownCommand(root, root.ExecuteContext(ctx))
	}
	c.report(err)
	return exitCode(err)
}

func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "fanfare",
		Short: "Notify every interested party the moment something happens",
		Long: `Fanfare notifies every interested party the moment something happens. Publish one
event, and everybody who subscribed to it gets a personal message.

By default, commands connect to the server on this machine and read its admin key from
the data directory. To use another server, set --server and FANFARE_KEY. A flag takes
precedence over the environment variable of the same name. If a flag and a different
variable could refer to different servers or data, for example --data-dir together with
FANFARE_SERVER, the command fails.

Exit codes:
  0  success
  1  failure
  2  partial success: some lines were rejected, or some deliveries failed
  3  the server cannot be reached
  4  the server rejected the API key`,
		SilenceUsage: true, SilenceErrors: true,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&c.server, "server", "", "URL of the server (FANFARE_SERVER; default "+defaultServer+")")
	flags.StringVar(&c.key, "key", "", "API key (prefer FANFARE_KEY; default: admin.key in the data directory)")
	flags.StringVar(&c.service, "service", "", "service to work on, if the server has several (FANFARE_SERVICE)")
	flags.StringVar(&c.dataDir, "data-dir", "", "data directory of the local server (FANFARE_DATA_DIR; default "+defaultDataDir+")")
	flags.BoolVar(&c.json, "json", false, "print JSON")

	root.AddGroup(&cobra.Group{ID: "server", Title: "Run the server:"}, &cobra.Group{ID: "work", Title: "Send and configure:"},
		&cobra.Group{ID: "things", Title: "Manage resources:"}, &cobra.Group{ID: "watch", Title: "Monitor and control:"})
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("server",
		demoCommand(),
		serveCommand(),
		c.workersCommand(),
		benchCommand(),
		c.sinkCommand(),
		c.configCommand(),
		c.doctorCommand(),
		c.backupCommand(),
		c.restoreCommand(),
		c.migrateCommand(),
	)
	add("work",
		c.applyCommand(),
		c.importCommand(),
		c.exportCommand(),
		c.publishCommand(),
		c.sendCommand(), c.sendsCommand(),
		c.previewCommand(),
		c.repliesCommand(),
	)
	add("watch",
		c.statusCommand(),
		c.nodesCommand(),
		c.traceCommand(),
		c.explainCommand(),
		c.matchCommand(),
		c.reportCommand(),
		c.stateCommand(),
		c.controlCommand("pause"),
		c.controlCommand("resume"),
		c.controlCommand("cancel"),
		c.approveCommand(),
		c.recallCommand(),
		c.expireCommand(),
		c.rateCommand(),
		c.relayCommand(),
		c.destinationsCommand(),
		c.parkedCommand(),
		c.taskCommand(),
		c.auditCommand(),
	)
	for i := range nouns {
		add("things", c.nounCommand(&nouns[i]))
	}
	add("things", c.keyCommand(), c.secretCommand(), c.dkimCommand(), c.suppressionCommand(), c.mailboxCommand())
	root.AddCommand(
		c.versionCommand(),
		c.openapiCommand(),
	)
	c.completeAll(root)
	sayUsage(root)
	c.guard(root)
	return root
}

// setting is a flag, or else a variable, or else the default.
func (c *cli) setting(flag, variable, preset string) string {
	if flag != "" {
		return flag
	}
	if v, ok := c.lookupEnv(variable); ok && v != "" {
		return v
	}
	return preset
}

// connect returns a client of the server that is meant.
func (c *cli) connect() (*client.Client, error) {
	if err := c.checkServer(c.server, c.dataDir, "--data-dir "+c.dataDir); err != nil { // completions come here unchecked
		return nil, err
	}
	key, noKey := c.findKey()
	api, err := client.New(c.setting(c.server, "FANFARE_SERVER", defaultServer), key)
	if err != nil {
		return nil, err
	}
	if noKey != nil {
		if err := api.Ready(context.Background()); fanfare.CodeOf(err) == fanfare.Unavailable { // the key may come with the start
			return nil, err
		}
		return nil, noKey
	}
	return api.ForService(c.setting(c.service, "FANFARE_SERVICE", "")).ToldOfWaits(tellWaitAfter, c.tellWait), nil
}

// findKey looks where the first start of a local server leaves the admin key.
func (c *cli) findKey() (string, error) {
	if c.key != "" {
		c.keyFrom = "--key"
		return c.key, nil
	}
	if key := c.setting("", "FANFARE_KEY", ""); key != "" && c.dataDir == "" { // a flag is stronger
		c.keyFrom = "FANFARE_KEY"
		return key, nil
	}
	path := filepath.Join(c.setting(c.dataDir, "FANFARE_DATA_DIR", defaultDataDir), "admin.key")
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return "", &fanfare.Error{Code: fanfare.Unauthenticated, Message: "no API key found in " + path,
			Hint: "set FANFARE_KEY, or pass the data directory of the server with --data-dir; fanfare serve creates the key when it starts for the first time, in a cluster only on the first node that leads: copy the file from there"}
	}
	if err != nil {
		return "", &fanfare.Error{Code: fanfare.Unauthenticated, Message: err.Error(), Hint: "set FANFARE_KEY, or run the command as the user that runs the server"}
	}
	c.keyFrom = path
	return strings.TrimSpace(string(b)), nil
}

func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// screen says how standard output may look.
func (c *cli) screen() terminal.Screen { return terminal.ScreenOf(c.out, c.lookupEnv) }

func (c *cli) newTable() *terminal.Table { return terminal.NewTable(c.out, c.screen().Width) }

// newBar shows progress on standard error.
func (c *cli) newBar(label, unit string, total int64) *terminal.Bar {
	return terminal.NewBar(c.err, label, unit, total)
}
