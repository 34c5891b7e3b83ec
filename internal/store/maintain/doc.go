// Package maintain has the loops that keep the database in order beside the pipeline. It
// indexes the history of deliveries, removes days that are older than the retention, and
// archives the topic states of old days in the control tables. The server starts each loop
// once.
//
// State. All of it is in the store. In memory are the lag of the index and the series of
// states that the control tables may have.
//
// Failure. Each loop logs an error and tries again. A day is removed only after all that must
// outlive it was copied, so a crash loses nothing.
package maintain

// recentDays is the number of the newest days for which events may still arrive.
const recentDays = 2
