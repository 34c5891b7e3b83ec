// Package process adjusts the process of the server: its garbage collector and its profile.
package process
