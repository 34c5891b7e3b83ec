package deliver

// wired are the jobs that were released and not reported yet: their messages are on
// the wire. Each knows its place among them.
type wired []*Job

// has reports whether a job is on the wire.
func (w wired) has(job *Job) bool { return job.wired > 0 }

func (w *wired) put(job *Job) {
	*w = append(*w, job)
	job.wired = len(*w)
}

// drop takes a job off the wire; the last one gets its place.
func (w *wired) drop(job *Job) {
	if !w.has(job) {
		return
	}
	all := *w
	last := all[len(all)-1]
	all[job.wired-1], last.wired = last, job.wired
	all[len(all)-1] = nil
	*w, job.wired = all[:len(all)-1], 0
}
