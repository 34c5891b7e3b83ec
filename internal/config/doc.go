// Package config reads the server's configuration.
//
// A value comes from, strongest first: a flag, the environment (FANFARE_ and
// the field's name in capitals), the YAML file that --config names, the
// default. Nothing is kept and nothing is watched: a change needs a restart.
//
// Loading is strict. A key that no field has is an error with its line, and a
// value that would fail later is refused at once, with the field's name, where
// the value came from and what to do. Secrets are never written in the file
// itself: a field that holds one can be set by the environment or by a *_file
// field that names a file with it.
package config
