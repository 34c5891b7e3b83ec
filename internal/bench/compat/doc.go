// Package compat measures the compatible APIs beside Fanfare's own API, on the same server and in the same run.
package compat
