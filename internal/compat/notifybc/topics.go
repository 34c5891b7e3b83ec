package notifybc

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"strings"
	"sync"
	"unicode/utf8"

	"fanfare.dev/fanfare"
	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

// A service name that is also a valid name of a topic is the name of its topic. Others are encoded, after one of these
// prefixes:
//
//	n.my_service-21    for myService!: _ marks a capital, - and two digits of hexadecimal is a byte
//	b.base32           all bytes
//	h.base32           the hash, for names that are too long; the title of the topic has the name
const (
	spelledPrefix = "n."
	encodedPrefix = "b."
	hashedPrefix  = "h."
)

const maxServiceNameBytes = 1000

var lowerBase32 = base32.HexEncoding.WithPadding(base32.NoPadding)

// topicName returns the name of the topic of a service name.
func topicName(serviceName string) string {
	if document.NamePattern.MatchString(serviceName) && !fanfare.ReservedTopic(serviceName) && !strings.HasPrefix(serviceName, spelledPrefix) && !strings.HasPrefix(serviceName, encodedPrefix) && !strings.HasPrefix(serviceName, hashedPrefix) {
		return serviceName
	}
	var spelled strings.Builder
	spelled.WriteString(spelledPrefix)
	for i := range len(serviceName) {
		switch c := serviceName[i]; {
		case 'A' <= c && c <= 'Z':
			spelled.WriteByte('_')
			spelled.WriteByte(c | 0x20)
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			spelled.WriteByte(c)
		default:
			spelled.WriteString("-" + hex.EncodeToString([]byte{c}))
		}
	}
	if name := spelled.String(); document.NamePattern.MatchString(name) {
		return name
	}
	if name := encodedPrefix + strings.ToLower(lowerBase32.EncodeToString([]byte(serviceName))); document.NamePattern.MatchString(name) {
		return name
	}
	sum := sha256.Sum256([]byte(serviceName))
	return hashedPrefix + strings.ToLower(lowerBase32.EncodeToString(sum[:]))
}

// serviceNameOf returns the service name of a topic.
func serviceNameOf(t *catalog.Topic) string {
	if rest, ok := strings.CutPrefix(t.Name, spelledPrefix); ok {
		var name []byte
		for i := 0; i < len(rest); i++ {
			switch {
			case rest[i] == '_' && i+1 < len(rest):
				i++
				name = append(name, rest[i]&^0x20)
			case rest[i] == '-' && i+2 < len(rest):
				if c, err := hex.DecodeString(rest[i+1 : i+3]); err == nil {
					name = append(name, c...)
				}
				i += 2
			default:
				name = append(name, rest[i])
			}
		}
		return string(name)
	}
	if rest, ok := strings.CutPrefix(t.Name, encodedPrefix); ok {
		if name, err := lowerBase32.DecodeString(strings.ToUpper(rest)); err == nil {
			return string(name)
		}
	}
	if strings.HasPrefix(t.Name, hashedPrefix) && t.Title != "" {
		return t.Title
	}
	return t.Name
}

// topicMaker creates topics, one at a time.
type topicMaker struct{ mu sync.Mutex }

// ensureTopic returns the topic of a service name, which it creates if it is missing.
func (a *API) ensureTopic(ctx context.Context, serviceName string) (string, error) {
	switch {
	case serviceName == "":
		return "", Bad("serviceName is required")
	case len(serviceName) > maxServiceNameBytes || !utf8.ValidString(serviceName):
		return "", Bad("serviceName is too long, or not valid UTF-8")
	}
	name := topicName(serviceName)
	if _, ok := a.Topics.Topic(a.Settings.Service, name); ok {
		return name, nil
	}
	a.topics.mu.Lock()
	defer a.topics.mu.Unlock()
	if _, ok := a.Topics.Topic(a.Settings.Service, name); ok {
		return name, nil
	}
	topic := map[string]any{"unique": catalog.UniqueSubscription}
	problem, _ := catalog.CheckLabel(serviceName, catalog.MaxLabelTitle)
	switch {
	case problem == "" && name != serviceName:
		topic["title"] = serviceName
	case strings.HasPrefix(name, hashedPrefix):
		return "", Bad("serviceName has more than 100 characters, or a character that cannot be shown")
	}
	text, err := json.Marshal(map[string]any{"service": a.Settings.Service, "topics": map[string]any{name: topic}})
	if err != nil {
		return "", err
	}
	d, err := document.ParseDocument(text, "")
	if err != nil {
		return "", err
	}
	_, err = a.Topics.Apply(ctx, d)
	return name, err
}
