//go:build race

package frame

// poison has Recycle overwrite the memory, so that tests find a frame that is still used.
const poison = true
