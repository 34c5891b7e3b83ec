package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/internal/cli/terminal"
)

func (c *cli) taskCommand() *cobra.Command {
	command := &cobra.Command{
		Use: "task", Short: "List, show or cancel tasks",
		Long: `A task acts on all objects that match a filter, such as all parked work. The web console
and "fanfare parked" start tasks. A task continues after a restart of the server.`,
	}
	list := &cobra.Command{
		Use: "list", Short: "List tasks, the newest first", Example: "  fanfare task list", Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			tasks := []client.Task{}
			for task, err := range api.Tasks(command.Context()) {
				if err != nil {
					return err
				}
				tasks = append(tasks, task)
			}
			if c.json {
				return c.printJSON(tasks)
			}
			c.printTasks(tasks)
			return nil
		},
	}
	show := &cobra.Command{
		Use: "show ID", Short: "Show a task with its progress", Example: "  fanfare task show tsk-644a4e2bc8f10", Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			task, err := api.Task(command.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printTask(&task)
		},
	}
	cancel := &cobra.Command{
		Use: "cancel ID", Short: "Cancel a task", Example: "  fanfare task cancel tsk-644a4e2bc8f10", Args: cobra.ExactArgs(1),
		Long: `Cancel a task. When the command ends, the task acts on no further object. Its changes
remain.`,
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			task, err := api.CancelTask(command.Context(), args[0])
			if err != nil {
				return err
			}
			return c.printTask(&task)
		},
	}
	command.AddCommand(list, show, cancel)
	return command
}

func (c *cli) printTasks(tasks []client.Task) {
	if len(tasks) == 0 {
		fmt.Fprintln(c.out, "there are no tasks")
		return
	}
	table := c.newTable()
	fmt.Fprintln(table, "ID\tSTARTED\tACTION\tFILTER\tSTATE\tDONE\tFAILED\tBY")
	for i := range tasks {
		task := &tasks[i]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%d of %d\t%d\t%s\n", task.ID, task.StartedAt.Local().Format(time.DateTime), task.Action, filterText(task), task.State, task.Done, task.Found, task.Failed, starterOf(task))
	}
	table.Flush()
}

// filterText returns the filter of a task in one line.
func filterText(t *client.Task) string {
	var parts []string
	for _, part := range []struct{ name, value string }{{"topic", t.Filter.Topic}, {"channel", t.Filter.Channel}, {"subscriber", t.Filter.Subscriber}, {"state", t.Filter.State}, {"reason", t.Filter.Reason}} {
		if part.value != "" {
			parts = append(parts, part.name+"="+part.value)
		}
	}
	if t.Filter.AllServices {
		parts = append(parts, "all services")
	}
	return orElse(terminal.Short(strings.Join(parts, " ")), "all")
}

func starterOf(t *client.Task) string {
	return terminal.Short(strings.TrimSpace(t.KeyID + " " + t.KeyName))
}

func (c *cli) printTask(t *client.Task) error {
	if c.json {
		return c.printJSON(t)
	}
	table := c.newTable()
	row := func(name, value string) {
		if value != "" {
			fmt.Fprintf(table, "%s\t%s\n", name, value)
		}
	}
	row("id", t.ID)
	row("service", orElse(t.Service, "all"))
	row("action", t.Action)
	row("filter", filterText(t))
	row("reason", terminal.Short(t.Reason))
	row("state", t.State)
	row("found", terminal.Grouped(t.Found))
	row("done", terminal.Grouped(t.Done))
	row("failed", terminal.Grouped(t.Failed))
	row("last error", terminal.Short(t.LastError))
	row("started", t.StartedAt.Local().Format(time.DateTime)+" by "+starterOf(t))
	if t.EndedAt != nil {
		row("ended", t.EndedAt.Local().Format(time.DateTime))
	}
	table.Flush()
	return nil
}
