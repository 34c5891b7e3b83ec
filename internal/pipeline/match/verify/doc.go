// Package verify evaluates conditions a second time, before any notification is sent because of
// them. It is called for every event, between the match and the manifest.
//
// The matching index answers quickly because it splits, shares and reorders conditions,
// and a mistake in this would notify the wrong people. The package therefore passes complete
// conditions to package evaluator, which shares no code with the index.
//
// # What is checked
//
// A Verifier checks conditions that the index reported as true, and conditions that it did
// not report. How many depends on its share of the processor time that the process uses:
//
//	checks per event  k = s * P / c
//
// where s is the share, P the processor time that the process uses per event and c the
// time of one check, both as measured ([Status]). At most [maxSlice] is spent on one event,
// however long the server was idle before. Half of the checks go to the reported
// conditions and half to the others, and each half goes round in the order of the
// conditions. So a condition that is reported with every event is checked again within
//
//	ceil(2 * R / k)  events, R being the number of conditions that are reported per event,
//
// and a condition that is not reported within ceil(2 * N / k) events, N being the number
// of conditions of the topic. With [Unlimited] every reported condition is checked at
// every event, and the others get the default share.
//
// # What a contradiction leads to
//
// A contradiction is an answer of the index that a second match repeats and that the
// evaluator denies. The Verifier then
//
//   - quarantines the condition: this is stored before anything else happens, survives a
//     restart and lasts until the condition is changed. A condition in quarantine is
//     evaluated for every event, and the answer of the index is ignored;
//   - evaluates, for this event, all subscriptions of every subscriber who has the
//     condition, as they are stored;
//   - counts and logs it, and shows it in [Status].
//
// # Failure
//
// An error of Match means that no notification of the event may be sent yet. It is
// [ErrUndecided] if the evaluator could not decide in time; the caller then parks the event.
// Every other error comes from the store and is temporary; the caller retries.
package verify
