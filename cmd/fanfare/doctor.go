package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"strings"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/admin/doctor"
	"fanfare.dev/fanfare/internal/admin/doctor/deep"
	"fanfare.dev/fanfare/internal/admin/doctor/probe"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/config"
)

func (c *cli) doctorCommand() *cobra.Command {
	var strict, thorough bool
	var backups []string
	command := &cobra.Command{
		Use: "doctor", Short: "Check a server and its environment for problems",
		Long: `Check a server and its environment, and print how to fix each problem. The checks
cover the configuration, the port, the data directory, the database, the disk and its
sync time, the clock, the resolver, the certificate, the limits and each channel,
including a login to its mail server. For each sender domain, the command looks up
SPF, DKIM and DMARC, and prints missing records. It does not send messages or change
data. It reads the configuration as fanfare serve does, so run it as the user that
runs the server.

With --deep, it also reads all stored data and verifies their checksums: events,
manifests, files, stored messages, the bus, and the structure of the databases. It
names each damaged value, what it affects and how to restore it. The server may run,
except that its bus is verified only when it is stopped. Reading everything slows
down the disk. --backup also verifies a backup file.

Exit code 1: there are problems or, with --strict, warnings.`,
		Example: `  fanfare doctor
  fanfare doctor --config /etc/fanfare.yaml --strict
  fanfare doctor --deep --backup /backups/fanfare-2026-11-28.backup
  fanfare doctor --json | jq '.findings[] | select(.level != "ok")'`,
		Args: cobra.NoArgs,
	}
	config.Flags(command.Flags())
	command.Flags().BoolVar(&strict, "strict", false, "also exit with code 1 if there are warnings")
	command.Flags().BoolVar(&thorough, "deep", false, "also read all stored data and verify their checksums")
	command.Flags().StringSliceVar(&backups, "backup", nil, "with --deep, also verify this backup `file`; can be repeated")
	command.RunE = func(command *cobra.Command, _ []string) error {
		if len(backups) > 0 && !thorough {
			return &fanfare.Error{Code: fanfare.Invalid, Message: "--backup verifies a backup only with --deep", Hint: "add --deep"}
		}
		settings, fault := config.Load(command.Flags())
		report := doctor.Look(command.Context(), c.doctorOptions(settings, fault))
		if thorough && fault == nil {
			if err := c.verifyData(command.Context(), settings, backups, report); err != nil {
				return err
			}
		}
		if c.json {
			if err := c.printJSON(report); err != nil {
				return err
			}
		} else {
			c.printReport(report)
		}
		if report.Wrong > 0 || strict && report.Warnings > 0 {
			return &fanfare.Error{Code: fanfare.Conflict, Message: tally(report)}
		}
		if !c.json {
			fmt.Fprintln(c.out, tally(report))
		}
		return nil
	}
	return command
}

// verifyData verifies all stored data, and writes to standard error how far it is.
func (c *cli) verifyData(ctx context.Context, settings config.Config, backups []string, report *doctor.Report) error {
	var told time.Time
	return deep.Verify(ctx, deep.Options{Config: settings, Backups: backups, Progress: func(what string, percent int) {
		now := time.Now()
		if c.json || now.Sub(told) < progressInterval {
			return
		}
		told = now
		if percent >= 0 {
			what += fmt.Sprintf(" (%d %%)", percent)
		}
		fmt.Fprintln(c.err, "verifying "+what)
	}}, report)
}

// progressInterval is the time between two lines that say what is being verified.
const progressInterval = time.Second

// doctorOptions tell the doctor what to check with these settings. If a check takes
// long, its name is written to standard error.
func (c *cli) doctorOptions(settings config.Config, fault error) doctor.Options {
	database := "the database"
	if !settings.SQLite() {
		database += " " + probe.Describe(settings.DB)
	}
	var unreachable error // the database, as the first look found: it is not waited for again
	return doctor.Options{
		Config: settings, Fault: fault, Version: version,
		Server: func(ctx context.Context) (*doctor.Server, error) { return c.lookAtServer(ctx, settings) },
		Database: func(ctx context.Context) (found *doctor.Database, err error) {
			found, err = waitingFor(ctx, c, database, func(ctx context.Context) (*doctor.Database, error) { return probe.Database(ctx, settings.DB) })
			unreachable = err
			return found, err
		},
		Reads: func(ctx context.Context) (*doctor.Database, error) {
			return waitingFor(ctx, c, "the standby "+probe.Describe(settings.DBReads), func(ctx context.Context) (*doctor.Database, error) {
				return probe.Database(ctx, settings.DBReads)
			})
		},
		Files: func(ctx context.Context) ([]doctor.File, error) { return probe.Files(ctx, settings.DataDir) },
		Charge: func(ctx context.Context) error {
			if unreachable != nil {
				return unreachable
			}
			return probe.StartAllowed(ctx, &settings)
		},
		Node:  func(ctx context.Context) error { return probe.Alive(ctx, &settings) },
		Rules: countRules,
		Channels: func(ctx context.Context) ([]*catalog.Channel, error) {
			err := unreachable
			if err == nil {
				var list []*catalog.Channel
				if list, err = probe.Channels(ctx, &settings); err == nil {
					return list, nil
				}
			}
			// The folder is somebody else's, or the database away: the server may tell.
			asked, failed := c.askChannels(ctx, settings)
			if failed != nil {
				return nil, err
			}
			return asked, nil
		},
		Probe: func(ctx context.Context, of *catalog.Channel, password string) (doctor.Session, error) {
			return waitingFor(ctx, c, "the relay "+of.Relay, func(ctx context.Context) (doctor.Session, error) { return probe.Relay(ctx, of, password) })
		},
		LookupHost: asking(c, net.DefaultResolver.LookupHost), LookupMX: asking(c, lookupMX), LookupTXT: asking(c, net.DefaultResolver.LookupTXT), Now: time.Now,
	}
}

// asking is a question to the resolver that says what it waits for.
func asking(c *cli, ask func(ctx context.Context, name string) ([]string, error)) func(ctx context.Context, name string) ([]string, error) {
	return func(ctx context.Context, name string) ([]string, error) {
		return waitingFor(ctx, c, "the resolver to find "+name, func(ctx context.Context) ([]string, error) { return ask(ctx, name) })
	}
}

// tally counts what was found.
func tally(r *doctor.Report) string {
	count := func(n int, one, many string) string {
		if n == 1 {
			return "1 " + one
		}
		return fmt.Sprintf("%d %s", n, many)
	}
	return count(r.Wrong, "problem", "problems") + ", " + count(r.Warnings, "warning", "warnings")
}

// lookAtServer asks what listens where the configuration says.
func (c *cli) lookAtServer(ctx context.Context, settings config.Config) (*doctor.Server, error) {
	api, err := c.beside(settings)
	if err != nil {
		return nil, err
	}
	status, err := api.Status(ctx)
	if err != nil {
		return nil, err
	}
	server := &doctor.Server{Version: status.Version, Ready: status.Ready, Reason: status.Reason, Parked: status.Parked}
	if status.Cluster != nil && status.Cluster.Bus != nil {
		b := status.Cluster.Bus
		server.Bus = &doctor.Copies{Embedded: b.Embedded, Replicas: b.Replicas, Current: b.Current, Synced: b.Sync == "always"}
	}
	if check := status.MatchCheck; check != nil {
		server.Contradictions = check.Contradictions
		for _, q := range check.Quarantined {
			server.Quarantined = append(server.Quarantined, quarantinedText(&q))
		}
	}
	for i := range status.TemplateFaults {
		if f := &status.TemplateFaults[i]; !f.Replaced && f.Absent == "" {
			server.TemplatesFailing = append(server.TemplatesFailing, templateFaultText(f))
		} else if !f.Replaced {
			server.TemplatesLacking = append(server.TemplatesLacking, templateFaultText(f))
		}
	}
	for _, ch := range status.Channels {
		if ch.LastError != "" {
			server.Troubled = append(server.Troubled, doctor.Trouble{Channel: ch.Service + "/" + ch.Name, Error: ch.LastError})
		}
		for _, p := range ch.Problems {
			check := "channel " + ch.Service + "/" + ch.Name
			if p.Selector != "" {
				check = "DKIM " + p.Selector + "._domainkey." + p.Domain
			}
			server.Problems = append(server.Problems, doctor.Problem{Check: check, Waits: p.Kind == "dkim_record", Error: p.Error, Hint: p.Hint})
		}
	}
	return server, nil
}

// askChannels has the server say what is configured.
func (c *cli) askChannels(ctx context.Context, settings config.Config) ([]*catalog.Channel, error) {
	api, err := c.beside(settings)
	if err != nil {
		return nil, err
	}
	var list []*catalog.Channel
	for service, err := range api.Services().All(ctx) {
		if err != nil {
			return nil, err
		}
		for channel, err := range api.ForService(service.Name).Channels().All(ctx) {
			if err != nil {
				return nil, err
			}
			text, err := json.Marshal(channel)
			if err != nil {
				return nil, err
			}
			one := &catalog.Channel{Service: service.Name, Name: channel.Name}
			if err := json.Unmarshal(text, &one.ChannelSettings); err != nil {
				return nil, err
			}
			list = append(list, one)
		}
	}
	return list, nil
}

// beside is a client of the server that these settings are for.
func (c *cli) beside(settings config.Config) (*client.Client, error) {
	own := *c
	own.server, own.key = urlOf(settings), c.setting(c.key, "FANFARE_KEY", "") // who may not read the directory has a key
	own.dataDir = settings.DataDir
	return own.connect()
}

// urlOf is where a server with these settings is reached from its own machine.
func urlOf(settings config.Config) string {
	scheme := "http"
	if settings.TLSCert != "" {
		scheme = "https"
	}
	host, port, err := net.SplitHostPort(settings.Listen)
	if err != nil {
		return scheme + "://" + settings.Listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

func (c *cli) printReport(r *doctor.Report) {
	s := c.screen()
	w := terminal.Page{Out: c.out, Screen: s}
	signs := map[doctor.Level]string{doctor.OK: s.Paint(terminal.Green, "✓"), doctor.Warning: s.Paint(terminal.Yellow, "!"), doctor.Wrong: s.Paint(terminal.Red, "✗")}
	for _, f := range r.Findings {
		indent := strings.Repeat(" ", 17)
		w.Line(fmt.Sprintf("%s %-14s ", signs[f.Level], f.Check), indent, f.What)
		if f.Mend != "" && f.Level != doctor.OK {
			w.Line(indent+"→ ", indent+"  ", f.Mend)
		}
	}
	fmt.Fprintln(c.out)
}

// lookupMX asks the resolver for the hosts that take the mail of a domain.
func lookupMX(ctx context.Context, domain string) ([]string, error) {
	records, err := net.DefaultResolver.LookupMX(ctx, domain)
	hosts := make([]string, len(records))
	for i, mx := range records {
		hosts[i] = mx.Host
	}
	return hosts, err
}
