package generate

import "fanfare.dev/fanfare"

// Cutter gathers the slices of manifests into batches: a large manifest gives
// many batches, many small ones share one. The slices of a manifest are the
// same however the batches fall.
type Cutter struct {
	open map[cutKey]*fanfare.Batch
	done []fanfare.Batch
}

type cutKey struct {
	day     fanfare.Day
	channel uint16
	lane    fanfare.Lane
}

// Add cuts all members of a manifest into slices for their first attempt.
func (c *Cutter) Add(day fanfare.Day, lane fanfare.Lane, m *fanfare.Manifest) {
	from := uint32(0)
	for i := range m.Sections {
		end := from + uint32(len(m.Sections[i].Members))
		for from < end {
			to := min(from+fanfare.MaxBatch, end)
			c.add(cutKey{day, m.Sections[i].Channel, lane}, fanfare.Slice{Manifest: m.ID, From: from, To: to, Attempt: 1})
			from = to
		}
	}
}

// AddDue cuts work whose time has come.
func (c *Cutter) AddDue(day fanfare.Day, due *fanfare.Due) {
	c.add(cutKey{day, due.Channel, due.Lane}, due.Slice)
}

func (c *Cutter) add(key cutKey, slice fanfare.Slice) {
	if c.open == nil {
		c.open = map[cutKey]*fanfare.Batch{}
	}
	batch := c.open[key]
	if batch != nil && batch.Members()+slice.Len() > fanfare.MaxBatch {
		c.done = append(c.done, *batch)
		batch = nil
	}
	if batch == nil {
		batch = &fanfare.Batch{Day: key.day, Channel: key.channel, Lane: key.lane}
		c.open[key] = batch
	}
	batch.Slices = append(batch.Slices, slice)
}

// Batches returns all batches and empties the cutter.
func (c *Cutter) Batches() []fanfare.Batch {
	batches := c.done
	for _, batch := range c.open {
		batches = append(batches, *batch)
	}
	c.open, c.done = nil, nil
	return batches
}
