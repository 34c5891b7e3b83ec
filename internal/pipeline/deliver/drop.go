package deliver

import "fanfare.dev/fanfare"

// Drop takes the messages of a subscriber out of the queue and settles them as
// suppressed, without their address. It does not wait for that to be recorded,
// and does not touch what connections have taken already: the gate decides there.
func (o *Sender) Drop(subscriber fanfare.RowID, why string) {
	o.mu.Lock()
	var finished []*Batch
	for _, job := range o.remove(func(job *Job) bool { return job.Subscriber == subscriber }) {
		job.Message.To = ""
		finished = o.dismiss(job, Suppress, why, finished)
	}
	o.unblock()
	o.mu.Unlock()
	finish(finished)
}
