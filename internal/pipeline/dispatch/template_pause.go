package dispatch

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/people/registry"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/render"
	"fanfare.dev/fanfare/internal/store/retry"
)

// If a template fails for more than half of the first recipients of a broadcast, none of them
// is recorded as failed. The broadcast is paused, and resumed with the next published version.
// No separate count is stored: a batch that is delivered again after a crash is tested again.

const (
	// testSize is the number of first recipients of a broadcast with which a template is tested.
	testSize = 100
	// maxPausedBroadcasts is the number of paused broadcasts above which templates pause no
	// further ones. Recipients for whom a template fails then fail immediately.
	maxPausedBroadcasts = 1000
	// resumeEvery is the interval at which broadcasts that a template paused are checked.
	resumeEvery = time.Second
)

// errLater is part of errors that are not caused by the message: the batch is delivered again.
var errLater = errors.New("the message cannot be rendered yet")

// message writes the message of the first of rest: with the template version of the event or, if
// that fails for the recipient, with the published one. It returns the mailing that wrote it.
func (l *loader) message(ctx context.Context, rest []openMember, m *mailing, channel *catalog.Channel, r *render.Recipient, buf []byte) (driver.Message, []byte, *mailing, error) {
	message, longer, err := m.write(buf, r)
	if _, fails := m.fault(err); !fails {
		return message, longer, m, err
	}
	now, ok := publishedVersion(l.Registry, m.template)
	if !ok {
		return message, longer, m, err
	}
	other, wrong := l.mailings.Get(mailingKey{rest[0].event(), now.Number}, func(k mailingKey) (*mailing, error) {
		return l.newMailing(ctx, m.event, k, channel)
	})
	if wrong == nil && other.items != nil {
		wrong = other.items.fetch(ctx, rest)
	}
	if wrong != nil {
		return message, longer, m, errors.Join(errLater, wrong)
	}
	message, longer, err = other.write(buf, r)
	return message, longer, other, err
}

// fault returns the place in the template that caused an error; ok is false if the template did
// not cause it.
func (m *mailing) fault(err error) (fault render.Fault, ok bool) {
	if err == nil || m.compiled == nil || m.template == 0 {
		return render.Fault{}, false
	}
	return m.compiled.Fault(err)
}

// templateFailed decides about a member whose message could not be written: it is held with its
// broadcast, which is paused then, or it has failed. tested holds the broadcasts of the batch
// whose templates fail for few.
func (l *loader) templateFailed(ctx context.Context, events *eventReader, all []openMember, at int, by *mailing, channel *catalog.Channel, rows *rows, tested map[fanfare.EventRef]bool, cause error) (held bool, err error) {
	fault, fails := by.fault(cause)
	if !fails {
		return false, nil
	}
	event := all[at].event()
	if !tested[event] {
		if held, err = l.testTemplate(ctx, events, all, at, channel, rows); held || err != nil {
			return held, err
		}
		tested[event] = true
	}
	if source, ok := l.Registry.Template(by.template); ok {
		l.faults.failed(&source, fault, 1)
	}
	return false, nil
}

// testTemplate is called when the template fails for the first of members, at most once for each
// broadcast of a batch. If it fails for more than half of the first recipients, testTemplate
// pauses the broadcast and returns true.
func (l *loader) testTemplate(ctx context.Context, events *eventReader, all []openMember, at int, channel *catalog.Channel, rows *rows) (paused bool, err error) {
	event := all[at].event()
	settled := 0
	if p, open := l.Recorder.Progress(event); open {
		settled = int(min(p.Counts.Settled(), testSize))
	}
	tried, failed := 0, 0
	var last *mailing
	var fault render.Fault
	for i := range all {
		if tried+settled >= testSize {
			break
		}
		if all[i].event() != event {
			continue
		}
		m, err := l.mailingFor(ctx, events, all[i:], channel)
		if err != nil {
			return false, err
		}
		r := l.recipient(&all[i], m, rows)
		if r == nil {
			continue
		}
		tried++
		if i < at { // its message was written
			continue
		}
		_, _, by, err := l.message(ctx, all[i:], m, channel, r, nil)
		if errors.Is(err, errLater) {
			return false, err
		}
		if of, fails := by.fault(err); fails {
			if failed++; failed == 1 {
				last, fault = by, of
			}
		}
	}
	if failed == 0 { // another version was published just now
		return false, errLater
	}
	if failed*2 <= tried+settled || len(l.Control.PausedBroadcasts()) >= maxPausedBroadcasts {
		return false, nil
	}
	source, ok := l.Registry.Template(last.template)
	if !ok {
		return false, nil
	}
	l.faults.failed(&source, fault, int64(failed))
	reason := pauseReason(&source, failed, tried+settled, fault)
	failpoint.Hit("before-template-pause")
	err = l.Control.Pause(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event.String()}, reason)
	if code := fanfare.CodeOf(err); err != nil && (code == fanfare.Conflict || code == fanfare.NotFound) {
		return false, nil // the broadcast is over
	}
	failpoint.Hit("after-template-pause")
	return err == nil, err
}

// pauseReason returns the reason in the status and the traces of a paused broadcast.
func pauseReason(source *catalog.TemplateSource, failed, of int, fault render.Fault) string {
	return fmt.Sprintf("template %s@%d fails for %d of the first %d recipients (%s): apply a corrected version to resume the broadcast", source.Name, source.Version, failed, of, fault)
}

var pausedBy = regexp.MustCompile(`^template (\S+)@(\d+) fails for \d+ of the first \d+ recipients \(`)

// pausedTemplate reads the template version out of such a reason.
func pausedTemplate(reason string) (template string, version int, ok bool) {
	found := pausedBy.FindStringSubmatch(reason)
	if found == nil {
		return "", 0, false
	}
	version, err := strconv.Atoi(found[2])
	return found[1], version, err == nil
}

// publishedVersion returns the published version of a template; ok is false if it is the given
// one, or if none is published.
func publishedVersion(r *registry.Registry, number uint32) (now *catalog.TemplateVersion, ok bool) {
	source, known := r.Template(number)
	if !known {
		return nil, false
	}
	now, err := r.Configuration().PickVersion(source.Service, source.Name, 0, false)
	return now, err == nil && now.Number != number
}

// resumer resumes broadcasts that were paused because of a template when another version of it is
// published, including one that was published before the start.
type resumer struct {
	*Stage
	services map[string]string // of broadcasts that were checked
}

// ResumePaused resumes broadcasts whose template was replaced, until ctx ends.
func (s *Stage) ResumePaused(ctx context.Context) {
	r := &resumer{Stage: s}
	for retry.Sleep(ctx, resumeEvery) == nil {
		r.look(ctx)
	}
}

func (r *resumer) look(ctx context.Context) {
	paused := r.Control.PausedBroadcasts()
	if r.services == nil || len(paused) == 0 {
		r.services = map[string]string{}
	}
	for _, p := range paused {
		template, version, ok := pausedTemplate(p.Reason)
		if !ok {
			continue
		}
		now, err := r.published(ctx, p, template)
		if err != nil || now.Version == version {
			continue
		}
		failpoint.Hit("before-template-resume")
		err = r.Control.Resume(ctx, p.Scope, fmt.Sprintf("template %s@%d is published", template, now.Version))
		if err != nil {
			r.Logger.Log(ctx, retry.LogLevel(err), "cannot resume a broadcast whose template was replaced; retrying", "event", p.Scope.Name, "error", err)
			continue
		}
		r.Logger.Info("resumed a broadcast with another version of its template", "event", p.Scope.Name, "template", template, "version", now.Version)
	}
}

// published returns the published version of a template of a broadcast's service.
func (r *resumer) published(ctx context.Context, p catalog.PausedScope, template string) (*catalog.TemplateVersion, error) {
	service, known := r.services[p.Scope.Name]
	if !known {
		ref, _ := fanfare.ParseEventRef(p.Scope.Name)
		b, err := r.Store.Broadcast(ctx, ref)
		if err != nil {
			return nil, err
		}
		service = b.Service
		r.services[p.Scope.Name] = service
	}
	return r.Registry.Configuration().PickVersion(service, template, 0, false)
}
