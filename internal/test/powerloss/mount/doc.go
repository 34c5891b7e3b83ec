// Package mount mounts a simulated disk (package disk) with FUSE, and serves commands to a test that runs in another process.
//
// The disk belongs to a process of its own, so that a test can kill the programs that use it. Writes reach the disk in the
// order in which programs make them: the kernel caches pages for reads, and writes through. Locks stay in
// the kernel.
package mount
