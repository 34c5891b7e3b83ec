package deliver

import "fanfare.dev/fanfare"

// Drop takes the messages of a subscriber out of the queue and settles them as
// suppressed, without their address. It does not wait for that to be recorded,
// and does not touch what connections have taken already: the gate decides there.
func (o *Outlet) Drop(subscriber fanfare.Place, why string) {
	o.mu.Lock()
	var finished []*Batch
	for lane := range o.lanes {
		queue := &o.lanes[lane]
		for range queue.len() {
			job := queue.pop()
			if job.Subscriber != subscriber {
				queue.push(job)
				continue
			}
			o.makeRoom(lane)
			job.Letter.To = ""
			finished = o.dismiss(job, Suppress, why, finished)
		}
	}
	o.mu.Unlock()
	finish(finished)
}
