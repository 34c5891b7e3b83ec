package deliver

// jobQueue is a first-in first-out queue that also takes a job back at its
// front.
type jobQueue struct {
	jobs []*Job
	head int
}

func (q *jobQueue) len() int { return len(q.jobs) - q.head }

func (q *jobQueue) push(job *Job) { q.jobs = append(q.jobs, job) }

func (q *jobQueue) pop() *Job {
	if q.len() == 0 {
		return nil
	}
	job := q.jobs[q.head]
	q.jobs[q.head] = nil
	q.head++
	if q.head == len(q.jobs) {
		q.jobs, q.head = q.jobs[:0], 0
	} else if q.head >= 4096 {
		n := copy(q.jobs, q.jobs[q.head:])
		clear(q.jobs[n:]) // or they would keep what they hold
		q.jobs, q.head = q.jobs[:n], 0
	}
	return job
}

func (q *jobQueue) unpop(job *Job) {
	if q.head > 0 {
		q.head--
		q.jobs[q.head] = job
		return
	}
	q.jobs = append([]*Job{job}, q.jobs...)
}
