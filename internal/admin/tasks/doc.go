// Package tasks acts on all objects that match a filter: parked work, broadcasts that wait for approval, suppressions, and subscriptions.
//
// State. A task is one row of the control part: its filter, who started it, its counts, and its position in the list that the filter selects. All tasks are
// also in memory; the oldest that have ended are deleted beyond a limit. In a cluster, the node that leads runs the tasks.
//
// Each object is changed by the same call as if a person had chosen it alone, and has the same entry in the audit log. A task works with the rights that the
// key of its starter has at that moment: it fails when the key loses them. It touches no object that is newer than itself, so it ends.
//
// Failure. A task continues after a restart at its position, which is stored with the counts after each page of the list. All actions are idempotent, so an
// object of an interrupted page is acted on again; if the server was killed, the objects of that page that were done before are not counted. An object that
// fails does not stop the task. While the database cannot be reached, the task waits.
package tasks
