package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/sink"
)

func (c *cli) sinkCommand() *cobra.Command {
	var cfg sink.Config
	var address, record string
	var startTLS bool
	var show int
	command := &cobra.Command{
		Use: "sink", Short: "Run a mail server that takes everything and counts",
		Long: `Run a mail server that takes everything, delivers nothing, and counts by event
and recipient: for a first try, for benchmarks and for tests. It can refuse, wait
and hang up in given shares. When it is stopped it prints a summary as JSON. With
--show the first messages are printed in full as they come.`,
		Example: `  fanfare sink --smtp 127.0.0.1:2525
  fanfare sink --smtp 127.0.0.1:0 --temp-fail 0.02 --perm-fail 0.01 --drop-in-data 0.001
  fanfare sink --show 10`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			cfg.KeepFirst = show
			if err := cfg.Validate(); err != nil {
				return err
			}
			if startTLS {
				if cfg.TLS, _, err = sink.SelfSigned("localhost"); err != nil {
					return err
				}
			}
			if record != "" {
				lines, refused := os.OpenFile(record, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
				if refused != nil {
					return refused
				}
				defer func() {
					if lost := lines.Close(); err == nil {
						err = lost
					}
				}()
				cfg.Record = lines
			}
			return c.runSink(command, sink.New(cfg), address)
		},
	}
	f := command.Flags()
	f.StringVar(&address, "smtp", "127.0.0.1:2525", "address to listen at; port 0 takes a free one")
	f.BoolVar(&startTLS, "tls", false, "offer STARTTLS, with a certificate made now")
	f.IntVar(&show, "show", 0, "print so many messages in full, the first ones, as they come")
	f.StringVar(&record, "record", "", "append a line per accepted recipient to this file: time, event, recipient, Message-ID")
	f.BoolVar(&cfg.RecordSync, "record-sync", false, "write that line before the message is answered")
	in := &cfg.Inject
	f.Uint64Var(&in.Seed, "seed", 1, "equal seeds refuse the same recipients")
	f.Float64Var(&in.TempFail, "temp-fail", 0, "share of recipients that are refused 4xx at the first attempt")
	f.BoolVar(&in.TempFailAlways, "temp-fail-always", false, "refuse them at every attempt")
	f.Float64Var(&in.PermFail, "perm-fail", 0, "share of recipients that are refused 5xx")
	f.StringVar(&in.At, "fail-at", sink.AtRcpt, "where refusals strike: rcpt, data or body")
	f.DurationVar(&in.Delay, "delay", 0, "wait before the answer to a message")
	f.Float64Var(&in.DelayShare, "delay-share", 1, "share of the messages that wait")
	f.Float64Var(&in.DropBeforeData, "drop-before-data", 0, "share of messages: hang up in place of the answer to DATA")
	f.Float64Var(&in.DropInData, "drop-in-data", 0, "share of messages: hang up when the body begins")
	f.Float64Var(&in.DropBeforeReply, "drop-before-reply", 0, "share of messages: hang up in place of the last answer")
	return command
}

// runSink serves until the command is interrupted, then prints the summary.
func (c *cli) runSink(command *cobra.Command, s *sink.Server, address string) error {
	at, err := s.Listen(address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return &fanfare.Error{Code: fanfare.Conflict, Message: err.Error(), Hint: "another program listens there, perhaps a sink that was started before; --smtp names another address"}
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(c.err, "sink takes mail at %s until Ctrl-C\n", at)
	served := make(chan error, 1)
	go func() { served <- s.Serve() }()
	printed := 0
	show := func() {
		for messages := s.Messages(); printed < len(messages); printed++ {
			m := &messages[printed]
			fmt.Fprintf(c.err, "---- from %s to %s\n%s\n", m.From, strings.Join(m.To, ", "), m.Body)
		}
	}
	bar := c.newBar("taking", "messages", 0)
	ticker := time.NewTicker(200 * time.Millisecond)
	defer ticker.Stop()
	for waiting := true; waiting; {
		select {
		case <-command.Context().Done():
			waiting = false
		case err := <-served:
			if err != nil {
				return err
			}
			waiting = false
		case <-ticker.C:
			n := s.Stats().Messages
			bar.set(n, n)
			show()
		}
	}
	err = s.Close()
	bar.end()
	show()
	if unprinted := c.printJSON(s.Stats()); err == nil {
		err = unprinted
	}
	return err
}
