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
		Long: `Run experiments against a real server. Bench starts this binary as a child process
with a data directory of its own below the working directory, and a sink in
another process. The experiments of the suite matching, except B8 and B10, measure
the index of conditions alone; they show the time of cel-go, and of the same work
without conditions, next to it.

An argument is the id of an experiment, the name of a suite, or all. A suite runs
those of its experiments that exist and lists the others. Bench fails if something
is lost, sent twice, traced wrongly or matched wrongly. It never fails because of a
rate.`,
		Example: `  fanfare bench list
  fanfare bench N1 --durability relaxed --out results.jsonl
  fanfare bench --scale 0.01 all
  fanfare bench --scale 10 B1 B2
  fanfare bench N1 --db postgres://bench@127.0.0.1/bench
  fanfare bench --runs 3 --out results.jsonl ssns
  fanfare bench report results.jsonl > page.html
  fanfare bench report --markdown results.jsonl
  fanfare bench pairs --old ./fanfare-before --pairs 5 N1 B1 L9 U1`,
		Args: cobra.MinimumNArgs(1),
	}
	benchFlags(c, &o)
	f := c.Flags()
	f.IntVar(&o.Runs, "runs", 1, "runs of each experiment; the median counts")
	f.StringVar(&o.Out, "out", "", "file to append records to, one JSON object a line")
	f.StringVar(&o.Keep, "keep", "", "folder to leave the server's data and logs in; with --db the schemas stay as well")
	f.StringVar(&o.Pprof, "pprof", "", "folder for CPU profiles of the server while the clock runs")
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
	f.Float64Var(&o.Scale, "scale", 1, "share of every size, above 0")
	f.StringVar(&o.Durability, "durability", "fsync", "fsync or relaxed")
	f.StringVar(&o.Sink, "sink", "builtin", "builtin, smtp-sink (of Postfix), or host:port of one that runs")
	f.StringVar(&o.DB, "db", "", usageDB)
	f.BoolVar(&o.TLS, "tls", false, "send over STARTTLS, with a certificate made for the run")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of what is random")
	f.IntVar(&o.Base, "base", 10_000_000, "I2: subscriptions that are there before the clock starts")
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
		Long: `Run experiments with an older binary and with this one, one directly after the
other, in alternating order. Between these pairs the older binary runs twice: the
ratios of these runs are the noise of the machine. The table shows, for the value
by its limit and for the CPU time of an item, the median of the pairwise ratios and
whether it is within the noise. The load, the sink and the raw limits always come
from this binary.`,
		Example: "  fanfare bench pairs --old ./fanfare-before --pairs 5 N1 B1 L9 U1",
		Args:    cobra.MinimumNArgs(1),
	}
	benchFlags(c, &o.Options)
	f := c.Flags()
	f.StringVar(&o.Old, "old", "", "binary to compare with (required)")
	f.IntVar(&o.Pairs, "pairs", 5, "pairs of the two binaries, and of the older one with itself")
	f.StringVar(&o.Out, "out", "", "file to append records to, one JSON object a line")
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
		Short: "Write records as a page to standard output",
		Long: `Write the records of fanfare bench --out as one HTML page with plots. With --markdown,
write one table for each suite, the newest run first, with the median and the spread
of the runs. With --into, write these tables into a Markdown page, between its two
marks.`,
		Example: `  fanfare bench report results.jsonl > page.html
  fanfare bench report --markdown results.jsonl
  fanfare bench report --into docs/explanation/measurements.md results.jsonl`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, files []string) error {
			var all []report.Record
			for _, file := range files {
				records, err := report.ReadRecords(file)
				if err != nil {
					return &fanfare.Error{Code: fanfare.Invalid, Message: err.Error(), Hint: "pass files that fanfare bench --out wrote"}
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
	c.Flags().BoolVar(&markdown, "markdown", false, "write Markdown tables in place of an HTML page")
	c.Flags().StringVar(&into, "into", "", "Markdown page to write the tables into")
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
