package postgres

// planSettings make the plan of a statement follow from its text: each is a look
// into a key, or a walk along one, and the planner would find another way only
// where it takes a table that has just been filled for an empty one. It then
// reads a million subscribers unordered and sorts them on disk. A plan is made
// once for each connection, and is never made anew for the values it is run with.
var planSettings = map[string]string{
	"plan_cache_mode":                 "force_generic_plan",
	"enable_seqscan":                  "off",
	"enable_bitmapscan":               "off",
	"enable_hashjoin":                 "off",
	"enable_sort":                     "off",
	"max_parallel_workers_per_gather": "0",
	"jit":                             "off",
}
