package server

import (
	"context"
	"fmt"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/admin/inspect"
	"fanfare.dev/fanfare/internal/admin/privacy"
	"fanfare.dev/fanfare/internal/admin/report"
	"fanfare.dev/fanfare/internal/compat/notify/files"
	"fanfare.dev/fanfare/internal/filetype"
	"fanfare.dev/fanfare/internal/httpapi/limits"
	"fanfare.dev/fanfare/internal/httpapi/wire"
	"fanfare.dev/fanfare/internal/mail/submission"
	"fanfare.dev/fanfare/internal/people/pages"
	"fanfare.dev/fanfare/internal/people/selfservice"
	"fanfare.dev/fanfare/internal/pipeline/ingest/messages"
	"fanfare.dev/fanfare/internal/sends"
)

// startMessages starts to accept messages to named recipients, of services and of the owners of mailboxes.
func (c *components) startMessages(ctx context.Context) (err error) {
	traces := c.traces(c.store) // up to date, unlike those of the standby
	c.accepting = new(privacy.Barrier)
	retention := time.Duration(c.config.Retention) * 24 * time.Hour
	c.messages = messages.New(messages.Options{
		Registry: c.registry, Templates: c.dispatch.Templates, Attachments: c.dispatch.Attachments, Files: filetype.Policy(c.config.AllowAttachments), MaxBytes: int(c.config.MaxAttachments),
		Collector: c.ingester, Recorder: c.recorder, Traces: traces, Store: c.store, Disk: c.disk, Clock: c.clock, Accepting: c.accepting,
		Accepted: func(ctx context.Context, ref fanfare.EventRef) (*fanfare.AcceptedEvent, error) {
			posted, _, err := report.Accepted(ctx, traces.Queue, c.store, ref)
			return posted, err
		},
		Replay: c.bus.ReplayEvents,
		Estimate: func(channel uint16, messages int) wire.DryRunChannel {
			return inspect.ChannelRun(c.registry, channel, messages)
		},
	})
	c.submitter = submission.New(submission.Options{
		Store: c.mailboxes, Recipients: c.recipients, Relay: messages.Submissions{Messages: c.messages}, Name: c.config.MailName(), Hourly: c.config.SubmissionRate, Clock: c.clock, Logger: c.log,
	})
	c.background(c.submitter.Run)
	c.sends, err = sends.Open(ctx, sends.Options{
		Store: c.control, Messages: c.messages, Traces: traces, Switches: c.switches, NeedsApproval: c.registry.SendsNeedApproval, Channel: c.registry.ChannelNamed,
		Estimate: func(channel uint16, messages int) wire.DryRunChannel {
			return inspect.ChannelRun(c.registry, channel, messages)
		},
		Restored: c.restored, Floor: c.disk.Check, Accepting: c.accepting, Record: retention, Keep: retention, Clock: c.clock, Logger: c.log,
	})
	if err != nil {
		return fmt.Errorf("sends: %w", err)
	}
	c.background(c.sends.Run)
	c.files = files.New(files.Options{
		Store: c.control, Key: c.keys.Suppression.Bytes, Address: (&limits.WrongKeys{Proxies: c.config.Proxies()}).ClientAddress, Clock: c.clock, Logger: c.log,
		Site: func(service string) (*pages.Site, string) {
			contact := ""
			if found := c.registry.Snapshot().Services[service]; found != nil {
				contact = found.Notify.Contact
			}
			return selfservice.SiteOf(c.registry, service), contact
		},
	})
	c.background(c.files.Run)
	return nil
}
