// Package upgrade holds the test that the data directory of every release opens
// under the present program, which brings it up to date and goes on with it.
//
// State. testdata has a folder for each release: data.tar.gz is a data directory
// as that release's program left it when it was killed, with subscriptions,
// finished and open broadcasts, and deferred, held, parked and unmatched work;
// expect.json says what must come of it. A release adds its own by
// `make release-fixture VERSION=v1.2.3` and changes no other.
//
// Failure. A release whose folder does not open any more is a release whose
// users lose what they have: mend the migration, not the folder.
package upgrade
