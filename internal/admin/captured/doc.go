// Package captured shows the messages in folders: those that a staging server captured (setting capture), and those of channels with the driver file. Developers
// read them in the console. The API calls the package.
//
// State. None: each request reads the folders. The name of a file is the id of its delivery, which also gives the order. A list reads the names of all files, and
// the header of those on the page. In a cluster, the folders are those of the node that answers.
//
// Failure. Messages are input from outside, because they contain the data of events: sizes, numbers and time are limited, names of files are never made from
// a request, symbolic links that leave a folder are not followed, and HTML is shown without scripts.
package captured

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"fanfare.dev/fanfare/internal/catalog"
	"fanfare.dev/fanfare/internal/catalog/document"
)

const (
	window       = 20_000                 // the number of newest files that a list considers at once
	maxSearched  = 5000                   // files that a page reads
	searchTime   = 100 * time.Millisecond // that a page may take to read files
	maxHeadBytes = 64 << 10               // of a file, for a list
	maxFolders   = 10_000                 // services, and channels of a service

	maxMessageBytes = 64 << 20 // above the largest message that the server sends
	maxHTMLBytes    = 4 << 20
	maxInlineBytes  = 10 << 20 // of all images in the HTML, each time that they occur
	maxTextBytes    = 512 << 10
	maxListed       = 500 // parts, header fields, links and attachments
	maxValueBytes   = 8 << 10
	maxParsing      = 2 // messages that are parsed at the same time
)

const (
	mailKind    = "mail"
	webhookKind = "webhook"

	extension = ".eml"
)

// Options are the folders.
type Options struct {
	Folders  []string                  // of captured messages
	Channels func() []*catalog.Channel // all channels
}

// Messages reads the messages in folders. It is safe for concurrent use.
type Messages struct {
	options Options
	parsing chan struct{} // a slot for each message that is parsed
}

// New returns the Messages of folders.
func New(o Options) *Messages { return &Messages{options: o, parsing: make(chan struct{}, maxParsing)} }

// A source is the folder of a channel.
type source struct {
	service, channel string
	captured         bool // not of the driver file
	open             func() (*os.Root, error)
}

// sources lists the folders of a service, or of all with "".
func (m *Messages) sources(service string) []source {
	list := m.captures(service)
	type owner struct{ service, channel string }
	byPath := map[string][]owner{}
	var paths []string
	for _, c := range m.options.Channels() {
		if c.Driver != "file" || c.Path == "" {
			continue
		}
		path, err := filepath.Abs(c.Path)
		if err != nil {
			continue
		}
		if byPath[path] == nil {
			paths = append(paths, path)
		}
		byPath[path] = append(byPath[path], owner{c.Service, c.Name})
	}
	for _, path := range paths {
		owners := byPath[path]
		foreign := slices.ContainsFunc(owners, func(o owner) bool { return service != "" && o.service != service })
		if foreign || m.isCapture(path) {
			continue // a folder that services share has messages of both
		}
		list = append(list, source{owners[0].service, owners[0].channel, false, func() (*os.Root, error) { return os.OpenRoot(path) }})
	}
	return list
}

// isCapture reports whether a folder is part of that of captured messages.
func (m *Messages) isCapture(path string) bool {
	return slices.ContainsFunc(m.options.Folders, func(of string) bool {
		folder, err := filepath.Abs(of)
		if err != nil {
			return true
		}
		rel, err := filepath.Rel(folder, path)
		return err != nil || filepath.IsLocal(rel)
	})
}

// captures lists the folders of captured messages.
func (m *Messages) captures(service string) (list []source) {
	for _, folder := range m.options.Folders {
		list = append(list, channelsIn(folder, service)...)
	}
	return list
}

// channelsIn lists the folders of channels in a folder of captured messages.
func channelsIn(folder, service string) (list []source) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil // nothing is captured yet
	}
	defer func() { _ = root.Close() }()
	services := []string{service}
	if service == "" {
		services = foldersIn(root, ".")
	}
	for _, of := range services {
		for _, channel := range foldersIn(root, of) {
			list = append(list, source{of, channel, true, func() (*os.Root, error) {
				root, err := os.OpenRoot(folder)
				if err != nil {
					return nil, err
				}
				defer func() { _ = root.Close() }()
				return root.OpenRoot(filepath.Join(of, channel))
			}})
		}
	}
	return list
}

// foldersIn lists the names in a folder that services and channels can have, in order.
func foldersIn(root *os.Root, path string) []string {
	folder, err := root.Open(path)
	if err != nil {
		return nil
	}
	defer func() { _ = folder.Close() }()
	names, _ := folder.Readdirnames(maxFolders) // what was read is used
	names = slices.DeleteFunc(names, func(name string) bool { return !document.NamePattern.MatchString(name) })
	slices.Sort(names)
	return names
}
