// Package maintain has the loops that maintain the database beside the pipeline. They index the history of deliveries, remove days that are
// older than the retention, and archive the topic states of old days in the control tables. The server starts each loop once.
//
// The store holds all state except the lag of the index and the series of states that the control tables may contain; these are in memory. A
// loop logs an error and tries again. A day is removed only after everything that must outlive it was copied, so a crash loses nothing.
package maintain

// recentDays is the number of newest days for which events may still arrive.
const recentDays = 2
