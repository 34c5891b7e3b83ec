// Package cache has a small cache of the newest results of a costly look-up.
package cache

import "slices"

// A Cache holds the Size newest results. It belongs to one goroutine. The zero value is empty.
type Cache[K comparable, V any] struct {
	entries map[K]V
	order   []K // oldest first
}

// Size is how many results a Cache holds.
const Size = 16

// Get returns the cached result of a key, or finds and adds it. An error is not cached.
func (c *Cache[K, V]) Get(key K, find func(K) (V, error)) (V, error) {
	if v, ok := c.entries[key]; ok {
		return v, nil
	}
	v, err := find(key)
	if err == nil {
		c.Add(key, v)
	}
	return v, err
}

// Lookup returns the cached result of a key.
func (c *Cache[K, V]) Lookup(key K) (V, bool) {
	v, ok := c.entries[key]
	return v, ok
}

// Remove drops the results that match.
func (c *Cache[K, V]) Remove(match func(V) bool) {
	c.order = slices.DeleteFunc(c.order, func(key K) bool {
		if !match(c.entries[key]) {
			return false
		}
		delete(c.entries, key)
		return true
	})
}

// Add caches the result of a key that is not cached yet.
func (c *Cache[K, V]) Add(key K, v V) {
	if c.entries == nil {
		c.entries = make(map[K]V, Size)
	}
	if len(c.order) == Size {
		delete(c.entries, c.order[0])
		c.order = append(c.order[:0], c.order[1:]...)
	}
	c.entries[key] = v
	c.order = append(c.order, key)
}
