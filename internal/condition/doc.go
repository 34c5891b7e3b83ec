// Package condition finds the subscriptions whose conditions match an event.
//
// The [Index] contains the conditions of all topics in memory. It is exact and incremental,
// does no I/O, and is filled from the registry at start. The match stage queries it for each
// event; the registry adds, changes and removes conditions; previews and reports query the cost
// of a condition and the reason for a match.
//
// # Packages
//
//   - lang reads conditions: CEL, the schema of the event, params, errors.
//   - expr compiles conditions into predicates and evaluates them on an event.
//   - condition itself builds the index from predicates and searches it.
//   - ngram finds which of many texts occur in another text.
//   - explain reports the result of each part of a condition.
//   - assert checks the index's own assumptions in builds with the tag assertions.
//   - evaluator decides conditions a second time and shares no code with the others.
//   - conditiontest compares the two.
//
// # State and failure
//
// The store can rebuild all that the index holds. A change is refused as a whole or
// takes effect as a whole, and a match that begins after Add or Remove has
// returned sees it. Matches of a topic run concurrently. A change blocks them only while it
// becomes visible: for a few subscriptions at a time, and never while
// it compiles. No condition can make a match fail. docs/reference/conditions.md
// defines the language.
//
// # How a match is found
//
// A filter is interned by its text: the index evaluates each distinct filter once per
// event and keeps its subscriptions in a bitmap. Filters that differ only in their
// literals share a shape (shape.go), which is compiled once; each filter is a row of
// that shape with its literals as params. A rule with the params of its subscriptions
// works in the same way. A filter a && b && c whose shape few others have is a
// conjunction of rows of conjunct shapes (conjunction.go); the one or two equalities
// that it shares with the fewest others are its guard (guard.go).
//
// A plan (plan.go) has guards, and each guard has access paths (access_path.go) that
// lead to the rows that may match: equalities to a bucket (bucket.go), texts to the
// rows that contain them (ngram), or that share them (shared_text.go), a range or a
// crossing (crossing.go) to a run of rows in the order of the bucket, ranges with two
// sides and places to a grid (grid.go). A row is on the access paths of the guard that
// it shares with the fewest others. The index evaluates the residual predicates only
// for rows that an access path leads to, and once per distinct text where they depend
// on one text. A condition without a guard, such as a single !=, is evaluated for every
// event; cost.go estimates what it costs.
package condition
