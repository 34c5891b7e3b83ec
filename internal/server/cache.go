package server

import "slices"

// cache keeps the few newest results of a costly look-up. It belongs to one
// goroutine.
type cache[K comparable, V any] struct {
	entries map[K]V
	order   []K // oldest first
}

const cacheSize = 16

// get returns what is known of a key, or finds it.
func (c *cache[K, V]) get(key K, find func(K) (V, error)) (V, error) {
	if v, ok := c.entries[key]; ok {
		return v, nil
	}
	v, err := find(key)
	if err == nil {
		c.keep(key, v)
	}
	return v, err
}

// forget drops some of what is known.
func (c *cache[K, V]) forget(which func(V) bool) {
	c.order = slices.DeleteFunc(c.order, func(key K) bool {
		if !which(c.entries[key]) {
			return false
		}
		delete(c.entries, key)
		return true
	})
}

// keep adds what was found of a key that is not known.
func (c *cache[K, V]) keep(key K, v V) {
	if c.entries == nil {
		c.entries = make(map[K]V, cacheSize)
	}
	if len(c.order) == cacheSize {
		delete(c.entries, c.order[0])
		c.order = append(c.order[:0], c.order[1:]...)
	}
	c.entries[key] = v
	c.order = append(c.order, key)
}
