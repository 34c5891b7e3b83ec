package server

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/failpoint"
	"fanfare.dev/fanfare/internal/pipeline/deliver/driver"
	"fanfare.dev/fanfare/internal/registry"
	"fanfare.dev/fanfare/internal/render"
)

// Of a broadcast whose template fails for more than half of those who come first,
// nobody is failed: it is paused, and what is pending is written by the version that
// is published when it goes on. Nothing of that is counted beside the outcomes that
// are kept: a batch that comes again after a kill is tried again.

// trialSize is how many members of a broadcast come first.
const trialSize = 100

// maxPausedBroadcasts is up to how many paused broadcasts templates pause further
// ones. Beyond, recipients for whom a template fails are failed at once.
const maxPausedBroadcasts = 1000

// letter writes a member's letter: by the version that was pinned when the event was
// frozen or, where that fails for this person, by the one that is published now. It
// returns whose error it is.
func (l *loader) letter(ctx context.Context, rest []pending, m *mailing, channel *registry.Channel, r *render.Recipient, page []byte) (driver.Message, []byte, *mailing, error) {
	letter, longer, err := m.write(page, r)
	if _, blamed := m.fault(err); !blamed {
		return letter, longer, m, err
	}
	now, ok := currentVersion(l.registry, m.template)
	if !ok {
		return letter, longer, m, err
	}
	event := eventOf(&rest[0])
	other, wrong := l.mailings.Get(mailingKey{event, now.Number}, func(k mailingKey) (*mailing, error) {
		return l.mailing(ctx, m.posted, k, channel)
	})
	if wrong == nil && other.items != nil {
		wrong = other.items.ahead(ctx, rest)
	}
	if wrong != nil {
		return letter, longer, m, errors.Join(errLater, wrong)
	}
	letter, longer, err = other.write(page, r)
	return letter, longer, other, err
}

// errLater is in errors that say nothing about the message: the batch comes again.
var errLater = errors.New("the message could not be written yet")

func (m *mailing) write(page []byte, r *render.Recipient) (driver.Message, []byte, error) {
	if m.err != nil {
		return driver.Message{}, page, m.err
	}
	return m.writer.Write(page, r)
}

// fault is where the template of a mailing is to blame for an error.
func (m *mailing) fault(err error) (render.Fault, bool) {
	if err == nil || m.compiled == nil || m.template == 0 {
		return render.Fault{}, false
	}
	return m.compiled.Fault(err)
}

// pauses is asked when the template fails for the first of members, at most once a
// broadcast and batch. It reports whether it fails for more than half of those who
// come first, and pauses the broadcast then.
func (l *loader) pauses(ctx context.Context, events *ahead, all []pending, at int, channel *registry.Channel, people *people) (bool, error) {
	event := eventOf(&all[at])
	settled := 0
	if p, open := l.recorder.Progress(event); open {
		settled = int(min(p.Counts.Settled(), trialSize))
	}
	tried, failed := 0, 0
	var last *mailing
	var fault render.Fault
	for i := range all {
		if tried+settled >= trialSize {
			break
		}
		if eventOf(&all[i]) != event {
			continue
		}
		m, err := l.mailingFor(ctx, events, all[i:], channel)
		if err != nil {
			return false, err
		}
		r := l.recipient(&all[i], m, people)
		if r == nil {
			continue
		}
		tried++
		if i < at { // it was written
			continue
		}
		_, _, by, err := l.letter(ctx, all[i:], m, channel, r, nil)
		if errors.Is(err, errLater) {
			return false, err
		}
		if of, blamed := by.fault(err); blamed {
			if failed++; failed == 1 {
				last, fault = by, of
			}
		}
	}
	if failed == 0 { // another version was published just now
		return false, errLater
	}
	if failed*2 <= tried+settled || len(l.switches.PausedBroadcasts()) >= maxPausedBroadcasts {
		return false, nil
	}
	source, ok := l.registry.Template(last.template)
	if !ok {
		return false, nil
	}
	l.faults.failed(&source, fault, int64(failed))
	reason := pauseReason(&source, failed, tried+settled, fault)
	failpoint.Hit("before-template-pause")
	err := l.switches.Pause(ctx, fanfare.Scope{Kind: fanfare.ScopeBroadcast, Name: event.String()}, reason)
	if code := fanfare.CodeOf(err); err != nil && (code == fanfare.Conflict || code == fanfare.NotFound) {
		return false, nil // it is over
	}
	failpoint.Hit("after-template-pause")
	return err == nil, err
}

// pauseReason is what status and traces say of a broadcast that its template paused.
func pauseReason(source *registry.TemplateSource, failed, of int, fault render.Fault) string {
	return fmt.Sprintf("template %s@%d fails for %d of the first %d recipients (%s): apply a corrected version, and the broadcast resumes", source.Name, source.Version, failed, of, fault)
}

var pausedBy = regexp.MustCompile(`^template (\S+)@(\d+) fails for \d+ of the first \d+ recipients \(`)

// pausedTemplate reads the version out of such a reason.
func pausedTemplate(reason string) (of templateFault, ok bool) {
	found := pausedBy.FindStringSubmatch(reason)
	if found == nil {
		return of, false
	}
	version, err := strconv.Atoi(found[2])
	return templateFault{template: found[1], version: version}, err == nil
}

// unwritten decides about a member whose message could not be written: it is held with
// the broadcast, which is paused then, or it has failed. passed has the broadcasts of
// the batch whose templates fail for few.
func (l *loader) unwritten(ctx context.Context, events *ahead, all []pending, at int, by *mailing, channel *registry.Channel, people *people, passed map[fanfare.EventRef]bool, cause error) (held bool, err error) {
	fault, blamed := by.fault(cause)
	if !blamed {
		return false, nil
	}
	event := eventOf(&all[at])
	if !passed[event] {
		if held, err = l.pauses(ctx, events, all, at, channel, people); held || err != nil {
			return held, err
		}
		passed[event] = true
	}
	if source, ok := l.registry.Template(by.template); ok {
		l.faults.failed(&source, fault, 1)
	}
	return false, nil
}
