package fanfare

import "slices"

// Forget empties what the event says of subscribers who are erased: what only
// their message saw, and, where it was sent to them alone, all that it said. It
// is false where the event does not name them; an event that was matched never
// does. That it was, to how many, and when, stays.
func (p *AcceptedEvent) Forget(erased []RowID) bool {
	if p.Direct == nil {
		return false
	}
	others, changed := 0, false
	for i := range p.Direct.Recipients {
		r := &p.Direct.Recipients[i]
		if !slices.Contains(erased, r.Subscriber) {
			others++
			continue
		}
		changed = true
		r.Data = nil
	}
	if !changed || others > 0 {
		return changed
	}
	p.Event = Event{ID: p.Event.ID, Source: p.Event.Source, Type: p.Event.Type, Time: p.Event.Time}
	p.Direct.Reference, p.Direct.Files = "", nil
	if p.Direct.Content != nil {
		p.Direct.Content = &Content{}
	}
	return true
}
