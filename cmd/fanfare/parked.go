package main

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare/internal/cli/terminal"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
)

func (c *cli) parkedCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "parked", Short: "List, retry or drop parked work",
		Long: `Work that failed five times is parked with its reason, so that it does not block other
work. Retry it after you have fixed the cause, or drop it: its deliveries are then settled
as cancelled.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List parked work", Example: "  fanfare parked list", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			parked, err := api.Parked(command.Context())
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(append([]fanfare.Parked{}, parked...)) // [] where nothing is
			}
			c.printParked(parked)
			return nil
		},
	}
	command.AddCommand(list,
		c.parkedAction("retry", "Retry parked work", (*client.Client).RetryParked),
		c.parkedAction("drop", "Drop parked work", (*client.Client).DropParked))
	return command
}

func (c *cli) printParked(parked []fanfare.Parked) {
	if len(parked) == 0 {
		fmt.Fprintln(c.out, "nothing is parked")
		return
	}
	table := c.newTable()
	fmt.Fprintln(table, "ID\tKIND\tEVENT\tSINCE\tFAILURES\tRECIPIENTS\tREASON")
	for _, p := range parked {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%d\t%d\t%s\n", p.ID, p.Kind, p.Event, p.At.Local().Format(time.DateTime), p.Failures, p.Members, terminal.Short(p.Reason))
	}
	table.Flush()
}

func (c *cli) parkedAction(name, summary string, do func(*client.Client, context.Context, string) error) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: name + " ID...", Short: summary,
		Long: summary + `. With --all, the command starts a task for everything that is parked
now, and prints the task. The task continues in the background.`,
		Example: "  fanfare parked " + name + " 17\n  fanfare parked " + name + " --all",
		Args: func(command *cobra.Command, ids []string) error {
			if all {
				return cobra.NoArgs(command, ids)
			}
			return cobra.MinimumNArgs(1)(command, ids)
		},
		RunE: func(command *cobra.Command, ids []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			if all {
				task, err := api.StartTask(command.Context(), client.TaskRequest{Action: name + "-parked"})
				if err != nil {
					return err
				}
				return c.printTask(&task)
			}
			for _, id := range ids {
				if err := do(api, command.Context(), id); err != nil {
					return err
				}
			}
			return nil
		},
	}
	command.Flags().BoolVar(&all, "all", false, "everything that is parked now")
	return command
}
