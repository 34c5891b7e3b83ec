package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/bench"
	"fanfare.dev/fanfare/internal/bench/harness"
	"fanfare.dev/fanfare/internal/bench/report"
)

// benchCommand runs experiments.
func benchCommand() *cobra.Command {
	o := harness.Options{}
	c := &cobra.Command{
		Use:   "bench ID...",
		Short: "Run experiments and compare them with published figures",
		Long: `Run experiments against a real server. The command starts this binary as a child
process with its own data directory in the working directory, and a sink in another
process. The experiments in the matching suite, except B8 and B10, measure only the
condition index, and compare it with cel-go and with the same work without conditions.
Those in the suite cluster start several nodes, and need PostgreSQL (--db).

Each argument is the id of an experiment, the name of a suite, or all. A suite runs
the experiments that are implemented and lists the others. The command fails if a
message is lost or sent twice, or if a trace or a match is wrong. It never fails
because a rate is too low.`,
		Example: `  fanfare bench list
  fanfare bench N1 --durability relaxed --out results.jsonl
  fanfare bench --scale 0.01 all
  fanfare bench --scale 10 B1 B2
  fanfare bench N1 --db postgres://bench@127.0.0.1/bench
  fanfare bench cluster --db postgres://bench@127.0.0.1/bench
  fanfare bench T1 --worker "node echo.js"
  fanfare bench --runs 3 --out results.jsonl ssns
  fanfare bench report results.jsonl > page.html
  fanfare bench report --markdown results.jsonl
  fanfare bench pairs --old ./fanfare-before --pairs 5 N1 B1 L9 U1`,
		Args: cobra.MinimumNArgs(1),
	}
	benchFlags(c, &o)
	f := c.Flags()
	f.IntVar(&o.Runs, "runs", 1, "number of runs of each experiment (the result is the median)")
	f.StringVar(&o.Out, "out", "", "file to append records to, one JSON object per line")
	f.StringVar(&o.Keep, "keep", "", "directory in which to keep the server's data and logs; with --db, the schemas are kept as well")
	f.StringVar(&o.Pprof, "pprof", "", "directory for CPU profiles of the server during the measured time")
	c.RunE = func(c *cobra.Command, ids []string) error {
		if err := benchEnvironment(c, &o); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return err
		}
		return bench.Run(c.Context(), o, ids)
	}
	c.AddCommand(benchListCommand(), benchReportCommand(), benchPairsCommand(), benchPartCommand())
	return c
}

// benchFlags are the flags of every command that runs experiments.
func benchFlags(c *cobra.Command, o *harness.Options) {
	f := c.Flags()
	f.Float64Var(&o.Scale, "scale", 1, "factor by which to scale all sizes, above 0 and at most 100")
	f.StringVar(&o.Durability, "durability", "fsync", "durability mode: fsync or relaxed")
	f.StringVar(&o.Sink, "sink", "builtin", "sink: builtin, smtp-sink (from Postfix), or the host:port of a running sink")
	f.StringVar(&o.DB, "db", "", usageDB)
	f.BoolVar(&o.TLS, "tls", false, "send over STARTTLS with a generated certificate")
	f.Uint64Var(&o.Seed, "seed", 1, "seed for random values")
	f.IntVar(&o.Base, "base", 10_000_000, "for I2: number of subscriptions that exist before the measurement starts")
	f.StringVar(&o.Worker, "worker", "", "for T1 and T2: command of a worker that returns the body of each request (default: a worker in Go)")
}

// benchEnvironment sets the options that do not come from flags.
func benchEnvironment(c *cobra.Command, o *harness.Options) (err error) {
	if o.DB, err = databaseOf(o.DB); err != nil {
		return err
	}
	if o.Binary, err = os.Executable(); err != nil {
		return err
	}
	o.Version = version
	o.Output, o.Terminal = c.OutOrStdout(), terminal.IsTerminal(c.OutOrStdout())
	return nil
}

// benchPairsCommand compares two binaries.
func benchPairsCommand() *cobra.Command {
	o := bench.PairOptions{Options: harness.Options{Runs: 1}}
	c := &cobra.Command{
		Use:   "pairs ID...",
		Short: "Compare this binary with an older one in alternating pairs",
		Long: `Run experiments in pairs, once with an older binary and once with this one, in
alternating order. Between these pairs, the older binary runs against itself; the
ratios of these runs show the noise of the machine. For the ratio of value to limit
and for the CPU time per item, the table shows the median of the pairwise ratios and
whether it is within the noise. This binary always generates the load, runs the sink
and measures the raw limits.`,
		Example: "  fanfare bench pairs --old ./fanfare-before --pairs 5 N1 B1 L9 U1",
		Args:    cobra.MinimumNArgs(1),
	}
	benchFlags(c, &o.Options)
	f := c.Flags()
	f.StringVar(&o.Old, "old", "", "older binary to compare with (required)")
	f.IntVar(&o.Pairs, "pairs", 5, "number of pairs of the two binaries, and of the older binary with itself")
	f.StringVar(&o.Out, "out", "", "file to append records to, one JSON object per line")
	c.RunE = func(c *cobra.Command, ids []string) error {
		if err := benchEnvironment(c, &o.Options); err != nil {
			return err
		}
		if err := o.Validate(); err != nil {
			return err
		}
		return bench.RunPairs(c.Context(), o, ids)
	}
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
	var markdown bool
	var into string
	c := &cobra.Command{
		Use:   "report FILE...",
		Short: "Write a report of records to standard output",
		Long: `Write the records of fanfare bench --out as an HTML page with plots. With --markdown,
write one table for each suite, newest run first, with the median and the spread of
the runs. With --into, write these tables into a Markdown page, between its two marker
comments.`,
		Example: `  fanfare bench report results.jsonl > page.html
  fanfare bench report --markdown results.jsonl
  fanfare bench report --into docs/explanation/measurements.md results.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var all []report.Record
			for _, file := range files {
				records, err := report.ReadRecords(file)
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "pass files written by fanfare bench --out"}
				}
				all = append(all, records...)
			}
			switch {
			case into != "":
				return bench.UpdatePage(into, all)
			case markdown:
				return bench.WriteMarkdown(c.OutOrStdout(), all)
			}
			return report.WriteHTML(c.OutOrStdout(), all)
		},
	}
	c.Flags().BoolVar(&markdown, "markdown", false, "write Markdown tables instead of an HTML page")
	c.Flags().StringVar(&into, "into", "", "Markdown page into which to write the tables")
	return c
}

// benchPartCommand is how bench starts its own processes.
func benchPartCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "part NAME SPEC",
		Short:  "Run one process of an experiment",
		Hidden: true,
		Args:   cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			return bench.Part(c.Context(), args[0], args[1], c.InOrStdin(), c.OutOrStdout())
		},
	}
}
