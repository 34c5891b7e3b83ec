package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench"
)

// benchCommand runs experiments.
func benchCommand() *cobra.Command {
	o := bench.Options{}
	c := &cobra.Command{
		Use:   "bench ID...",
		Short: "Run experiments and hold them against published figures",
		Long: `Run experiments against a real server: this binary as a child process, with a
data directory of its own below the working directory, and a sink in another
process. Those of the suite matching, but B8 and B10, measure the index of
conditions alone; beside them stand cel-go for each subscription and what the
memory alone allows. The suites notifybc, ssns, govuk, telepathy, james, import,
history, shaping and matching run those of theirs that exist and list the others; all is
everything. It fails where something is lost, or sent twice, or traced or matched
wrongly; never because of a rate.`,
		Example: `  fanfare bench list
  fanfare bench N1 --durability relaxed --out results.jsonl
  fanfare bench --scale 0.01 all
  fanfare bench --scale 10 B1 B2
  fanfare bench N1 --db postgres://bench@127.0.0.1/bench
  fanfare bench report results.jsonl > page.html`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	f.Float64Var(&o.Scale, "scale", 1, "share of every size, above 0")
	f.IntVar(&o.Runs, "runs", 1, "runs of each experiment, of which the median counts")
	f.StringVar(&o.Durability, "durability", "fsync", "fsync or relaxed")
	f.StringVar(&o.Sink, "sink", "builtin", "builtin, smtp-sink (of Postfix), or host:port of one that runs")
	f.StringVar(&o.DB, "db", "", usageDB)
	f.BoolVar(&o.TLS, "tls", false, "send over STARTTLS, with a certificate made for the run")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of what is random")
	f.IntVar(&o.Base, "base", 10_000_000, "I2: subscriptions that are there before the clock starts")
	f.StringVar(&o.Out, "out", "", "file to append records to, one JSON object a line")
	f.StringVar(&o.Keep, "keep", "", "folder to leave the server's data and logs in; with --db the schemas stay as well")
	f.StringVar(&o.Pprof, "pprof", "", "folder for CPU profiles of the server while the clock runs")
	c.RunE = func(c *cobra.Command, ids []string) error {
		var err error
		if o.DB, err = databaseOf(o.DB); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return err
		}
		if o.Binary, err = os.Executable(); err != nil {
			return err
		}
		o.Output, o.Terminal = c.OutOrStdout(), isTerminal(c.OutOrStdout())
		return bench.Run(c.Context(), o, ids)
	}
	c.AddCommand(benchListCommand(), benchReportCommand(), benchPartCommand())
	return c
}

func benchListCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "List the experiments",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			t := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			fmt.Fprintln(t, "ID\tSHOWS\tPUBLISHED")
			for _, e := range bench.Experiments() {
				published := e.Published.Text
				if published == "" {
					published = "-"
				}
				fmt.Fprintf(t, "%s\t%s\t%s\n", e.ID, e.Shows, published)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			later := slices.Sorted(maps.Keys(bench.Missing()))
			fmt.Fprintf(c.OutOrStdout(), "\nCannot run yet: %s\n", strings.Join(later, " "))
			return nil
		},
	}
}

func benchReportCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "report FILE...",
		Short: "Write records as one HTML page to standard output",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var all []bench.Record
			for _, file := range files {
				records, err := bench.ReadRecords(file)
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "name files that were written by bench --out"}
				}
				all = append(all, records...)
			}
			return bench.WriteReport(c.OutOrStdout(), all)
		},
	}
}

// benchPartCommand is how bench starts its own processes.
func benchPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "part NAME SPEC",
		Short:  "A process of an experiment",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return bench.Part(c.Context(), args[0], args[1], c.InOrStdin(), c.OutOrStdout())
		},
	}
}
