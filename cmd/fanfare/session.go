package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/client"
	"fanfare.dev/fanfare/client/session"
)

// sessionVerbs are the verbs of sessions beside list and get.
func (c *cli) sessionVerbs() []*cobra.Command {
	return []*cobra.Command{c.sessionOpen(), c.sessionClose(), c.sessionSend(), c.sessionResponses(), c.sessionTrace()}
}

func (c *cli) sessionOpen() *cobra.Command {
	var what client.SessionRequest
	var idle, total time.Duration
	resends := 3
	command := &cobra.Command{
		Use: "open WORKER", Short: "Open a session and print its id",
		Long: `Open a session on a worker and print its id. With --name, the command uses the open
session with this name and the same options, if there is one.`,
		Example: `  fanfare session open pricing --durable
  fanfare session open pricing --name nightly --min-instances 4 --priority 80`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			what.Worker = args[0]
			if command.Flags().Changed("resends") {
				what.Resends = &resends
			}
			if idle > 0 {
				what.IdleTimeout = idle.String()
			}
			if total > 0 {
				what.TotalTimeout = total.String()
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			s, err := api.OpenSession(command.Context(), what)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(s)
			}
			fmt.Fprintln(c.out, s.ID)
			return nil
		},
	}
	flags := command.Flags()
	durable := flags.Bool("durable", false, "store requests and responses in the database")
	command.PreRun = func(*cobra.Command, []string) {
		if *durable {
			what.Kind = session.Durable
		}
	}
	flags.StringVar(&what.Name, "name", "", "name of the session, unique among the open sessions of the service")
	flags.IntVar(&what.MinInstances, "min-instances", 0, "instances that agents keep ready while the session is open")
	flags.IntVar(&what.MaxInstances, "max-instances", 0, "maximum number of instances that work for the session at the same time; 0: no limit")
	flags.IntVar(&what.Priority, "priority", 0, "weight of its share of the instances, 1 to 100 (default 50)")
	flags.IntVar(&resends, "resends", 3, "how many times a request is sent again after a retry or a timeout; 0: it runs at most once")
	flags.DurationVar(&idle, "idle-timeout", 0, "the session ends after this time without clients or work (default 5m, or 168h if it is durable)")
	flags.DurationVar(&total, "total-timeout", 0, "the session ends this long after it was opened (default 720h)")
	return command
}

func (c *cli) sessionClose() *cobra.Command {
	var purge bool
	command := &cobra.Command{
		Use: "close SESSION", Short: "Close a session",
		Long:    `Close a session for all its clients: requests that have no response are cancelled.`,
		Example: `  fanfare session close ses-17 --purge`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			return api.CloseSession(command.Context(), args[0], purge)
		},
	}
	command.Flags().BoolVar(&purge, "purge", false, "also remove its requests and responses")
	return command
}

// clientFlag adds the flag with the name of the stream.
func clientFlag(command *cobra.Command, name *string) {
	command.Flags().StringVar(name, "client", "cli", "name of the stream of requests and responses in the session")
}

func (c *cli) sessionSend() *cobra.Command {
	var name string
	var request session.Request
	command := &cobra.Command{
		Use: "send SESSION FILE|-", Short: "Send each line of a file as a request, and print the responses",
		Long: `Send each line of a file, or of standard input, as a request, and print each response
with the number of its request: the first line is request 1. Responses arrive in the
order in which the requests finish. Faults are printed to standard error, and the exit
code is then 2.

The command ends the stream of requests. To send more in the same session, use another
--client.`,
		Example: `  fanfare session send ses-17 orders.ndjson
  seq 100 | fanfare session send $(fanfare session open pricing) -`,
		Args: cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			in, _, err := c.open(args[1])
			if err != nil {
				return err
			}
			defer func() { _ = in.Close() }() // it was read
			s, err := session.Attach(command.Context(), api, args[0])
			if err != nil {
				return err
			}
			cl, err := s.Client(command.Context(), name)
			if err != nil {
				return err
			}
			return c.exchange(command.Context(), cl, in, request)
		},
	}
	clientFlag(command, &name)
	command.Flags().StringVar(&request.Action, "action", "", "action of the requests")
	command.Flags().DurationVar(&request.Timeout, "timeout", 0, "timeout of each task (default: that of the action or worker)")
	return command
}

// exchange sends the lines of in, and prints the responses.
func (c *cli) exchange(ctx context.Context, cl *session.Client, in io.Reader, request session.Request) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	first := cl.Last()
	sent := make(chan error, 1)
	go func() { sent <- sendLines(ctx, cl, in, request) }()
	bar := c.newBar("responses", "responses", 0)
	faults, done := 0, int64(0)
	for r, err := range cl.Responses(ctx) {
		if err != nil {
			bar.End()
			select {
			case failed := <-sent:
				return errors.Join(failed, err)
			default:
				return err
			}
		}
		if r.Request <= first {
			continue
		}
		done++
		bar.Set(done, done)
		if fault := r.Err(); fault != nil {
			faults++
			fmt.Fprintf(c.err, "request %d: %v\n", r.Request-first, fault)
			continue
		}
		if c.json {
			if err := c.printJSON(map[string]any{"request": r.Request - first, "body": string(r.Body)}); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(c.out, "%d\t%s\n", r.Request-first, r.Body)
	}
	bar.End()
	if err := <-sent; err != nil {
		return err
	}
	if err := cl.Close(ctx); err != nil {
		return err
	}
	if faults > 0 {
		return &someFailed{fmt.Sprintf("%d of %d requests failed", faults, done)}
	}
	return nil
}

// maxRequestLine is the maximum length of a line.
const maxRequestLine = 1 << 20

func sendLines(ctx context.Context, cl *session.Client, in io.Reader, request session.Request) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRequestLine)
	for n := 1; lines.Scan(); n++ {
		request.Body = lines.Bytes()
		if _, err := cl.SendRequest(ctx, request); err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the requests: %w", err)
	}
	return cl.End(ctx)
}

func (c *cli) sessionResponses() *cobra.Command {
	var name string
	var from uint64
	var limit int
	command := &cobra.Command{
		Use: "responses SESSION", Short: "List the responses to a client of a session",
		Example: `  fanfare session responses ses-17 --client orders --from 101`,
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			api, err := c.connect()
			if err != nil {
				return err
			}
			page, err := api.Responses(command.Context(), args[0], name, from, limit)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(page)
			}
			table := c.newTable()
			fmt.Fprintln(table, "NUMBER\tREQUEST\tID\tSTATUS\tATTEMPTS\tBODY")
			for i := range page.Responses {
				r := &page.Responses[i]
				body := r.Text
				if body == "" && len(r.Body) > 0 {
					body = fmt.Sprintf("%d bytes", len(r.Body))
				}
				fmt.Fprintf(table, "%d\t%d\t%s\t%s\t%d\t%s\n", r.Number, r.Request, r.ID, r.Status, r.Attempts, cellOf(body))
			}
			table.Flush()
			if len(page.Responses) == limit {
				fmt.Fprintf(c.out, "more: --from %d\n", page.Next)
			}
			return nil
		},
	}
	clientFlag(command, &name)
	command.Flags().Uint64Var(&from, "from", 1, "number of the first response")
	command.Flags().IntVar(&limit, "limit", 100, "number of responses, at most 1000")
	return command
}

func (c *cli) sessionTrace() *cobra.Command {
	var name string
	command := &cobra.Command{
		Use: "trace SESSION REQUEST", Short: "Show what happened to a request",
		Long: `Show when a request was queued, to which instances it was sent and when it was
answered. An interactive session stores the traces of faults and of one request in a
thousand; a durable session stores those of all requests.`,
		Example: `  fanfare session trace ses-17 42 --client orders`,
		Args:    cobra.ExactArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			number, err := strconv.ParseUint(args[1], 10, 64)
			if err != nil || number == 0 {
				return &fanfare.Error{Code: fanfare.Invalid, Message: args[1] + " is not the number of a request", Hint: "the requests in each client's stream are numbered from 1"}
			}
			api, err := c.connect()
			if err != nil {
				return err
			}
			t, err := api.TraceRequest(command.Context(), args[0], name, number)
			if err != nil {
				return err
			}
			if c.json {
				return c.printJSON(t)
			}
			at := func(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05.000") }
			fmt.Fprintf(c.out, "%s  queued\n", at(t.QueuedAt))
			for _, d := range t.Dispatched {
				outcome := d.Outcome
				if outcome == "" {
					outcome = "running"
				}
				fmt.Fprintf(c.out, "%s  sent to %s: %s\n", at(d.At), d.Instance, outcome)
			}
			if !t.AnsweredAt.IsZero() {
				fmt.Fprintf(c.out, "%s  answered: %s, response %d\n", at(t.AnsweredAt), t.Status, t.Response)
			}
			return nil
		},
	}
	clientFlag(command, &name)
	return command
}
