//go:build !race

package frame

const poison = false
