package fanfare

import "slices"

// EraseRecipients removes the data of erased subscribers from the event: the data that only their
// messages use and, if all recipients are erased, the data of the event. The record of the
// event, its time and its number of recipients stay. EraseRecipients returns false if the event does
// not name the subscribers; a matched event never does.
func (p *AcceptedEvent) EraseRecipients(erased []RowID) bool {
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
	if p.Content != nil {
		p.Content = &EventContent{}
	}
	return true
}
