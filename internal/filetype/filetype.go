package filetype

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"fanfare.dev/fanfare"
)

// MaxName is the length of the longest file name, in bytes.
const MaxName = 200

// A Policy lists programs that the operator allows, by extension in lower case without a dot.
type Policy []string

// Attachment returns the media type of an attached file. declared is the type that its sender
// declares, or "".
func (p Policy) Attachment(name, declared string, content []byte) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	extension := extensionOf(name)
	if programs[extension] && !slices.Contains(p, extension) {
		return "", refuse(name, "send a link instead, or ask the operator to add the extension to allow_attachments", "files with the extension .%s are programs, which mail servers refuse", extension)
	}
	found := signatureOf(content)
	if programs[found.name] && !slices.Contains(p, found.name) {
		return "", refuse(name, "send a link instead, or ask the operator to add "+found.name+" to allow_attachments", "the content of the file is a program, whatever its name")
	}
	byName := byExtension[extension]
	media, err := declaredType(name, declared)
	switch {
	case err != nil:
		return "", err
	case media == "" && byName != "":
		media = byName
	case media == "" && found.media != "":
		media = found.media
	case media == "":
		media = guessType(content)
	case byName != "" && !compatible(media, byName):
		return "", refuse(name, "remove the type, or rename the file", "the declared type is %s, but the extension indicates %s", media, byName)
	}
	return media, checkContent(name, media, found, content)
}

// Image returns the media type of an image in HTML: one that all mail readers support.
func Image(name, declared string, content []byte) (string, error) {
	if err := checkName(name); err != nil {
		return "", err
	}
	media, err := declaredType(name, declared)
	if err != nil {
		return "", err
	}
	found := signatureOf(content)
	if !slices.Contains(embeddableImages, found.media) {
		return "", refuse(name, "convert it to PNG, JPEG, GIF or WebP", "email clients do not show files of this type as images")
	}
	byName := byExtension[extensionOf(name)]
	if media != "" && media != found.media || byName != "" && byName != found.media {
		return "", refuse(name, "correct the type and the extension", "the content is %s, which contradicts the type or the extension", found.media)
	}
	return found.media, nil
}

// embeddableImages are the types of images that mail readers show in HTML.
var embeddableImages = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// refuse returns the error about a file.
func refuse(name, hint, format string, args ...any) *fanfare.Error {
	if len(name) > MaxName {
		name = strings.ToValidUTF8(name[:MaxName], "") + "…"
	}
	return &fanfare.Error{Code: fanfare.Invalid, Hint: hint, Message: fmt.Sprintf("%q: ", name) + fmt.Sprintf(format, args...)}
}

// checkName refuses names that could be misread or changed where they arrive.
func checkName(name string) error {
	switch {
	case name == "":
		return refuse(name, "use a name such as terms.pdf", "the file has no name")
	case len(name) > MaxName:
		return refuse(name, "", "the name is longer than %d bytes", MaxName)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isInvisible):
		return refuse(name, "use visible characters only", "the name has invisible characters, or is not UTF-8")
	case strings.ContainsAny(name, `/\`):
		return refuse(name, "pass the name without a path", "the name contains a path")
	case strings.TrimFunc(name, func(r rune) bool { return r == ' ' || r == '.' }) == "" || strings.HasSuffix(name, ".") || strings.TrimSpace(name) != name:
		return refuse(name, "use a name such as terms.pdf", "the name ends with a dot, or begins or ends with a space, which some systems remove")
	}
	return nil
}

// isInvisible reports control characters and those that change the direction of a name: gpj.exe
// could be shown as exe.jpg.
func isInvisible(r rune) bool {
	return unicode.IsControl(r) || r == 0xfeff || r >= 0x200b && r <= 0x200f || r >= 0x2028 && r <= 0x202e || r >= 0x2060 && r <= 0x2069
}

func extensionOf(name string) string {
	return strings.ToLower(strings.TrimPrefix(path.Ext(name), "."))
}

var mediaPattern = regexp.MustCompile(`^[a-z]+/[a-z0-9][a-z0-9!#$&^_.+-]{0,100}$`)

// declaredType parses the type that a sender declares.
func declaredType(name, declared string) (string, error) {
	media, _, _ := strings.Cut(declared, ";")
	media = strings.ToLower(strings.TrimSpace(media))
	switch {
	case media == "":
		return "", nil
	case !mediaPattern.MatchString(media):
		return "", refuse(name, "use a type such as application/pdf", "%.100q is not a media type", declared)
	case strings.HasPrefix(media, "multipart/"), strings.HasPrefix(media, "message/"):
		return "", refuse(name, "declare application/octet-stream", "email clients would show a file of type %s as part of the message", media)
	}
	return media, nil
}

// compatible reports whether a file with the extension of one type may declare another.
func compatible(media, byName string) bool {
	text := func(media string) bool { return strings.HasPrefix(media, "text/") && media != "text/html" }
	return media == byName || media == "application/octet-stream" || text(media) && text(byName)
}

// checkContent refuses a file whose bytes contradict its type in a harmful way.
func checkContent(name, media string, found signature, content []byte) error {
	const hint = "correct the type and the extension"
	if slices.Contains(typesWithSignature, media) && found.media != media {
		return refuse(name, hint, "the type is %s, but the content has a different format", media)
	}
	switch found.media {
	case "", media:
	case "application/zip": // office documents are archives
		if !strings.HasPrefix(media, "application/") {
			return refuse(name, hint, "the type is %s, but the content is an archive", media)
		}
	default:
		if media != "application/octet-stream" {
			return refuse(name, hint, "the type is %s, but the content is %s", media, found.media)
		}
	}
	if looksLikeHTML(content) && media != "text/html" && media != "application/xhtml+xml" && media != "image/svg+xml" && media != "application/xml" && media != "text/xml" {
		return refuse(name, "use the extension .html, and remove the type", "the type is %s, but the content is HTML", media)
	}
	return nil
}

// looksLikeHTML reports whether a browser would take the bytes for a page (WHATWG MIME
// Sniffing, section 7.1).
func looksLikeHTML(content []byte) bool {
	content = bytes.TrimLeft(content, "\t\n\x0c\r ")
	return slices.ContainsFunc(htmlPrefixes, func(begin string) bool {
		if len(content) < len(begin) || !strings.EqualFold(string(content[:len(begin)]), begin) {
			return false
		}
		after := content[len(begin):]
		return len(after) > 0 && (after[0] == ' ' || after[0] == '>')
	})
}

// guessType returns the type of a file without a known name or signature.
func guessType(content []byte) string {
	switch {
	case looksLikeHTML(content):
		return "text/html"
	case utf8.Valid(content) && !slices.Contains(content, 0):
		return "text/plain"
	}
	return "application/octet-stream"
}

// programs are the extensions that Gmail refuses (https://support.google.com/mail/answer/6590),
// and those of programs and scripts of other systems.
var programs = set(
	"ade", "adp", "apk", "appx", "appxbundle", "bat", "cab", "chm", "cmd", "com", "cpl", "diagcab", "diagcfg", "diagpkg", "dll", "dmg", "ex", "ex_", "exe", "hta",
	"img", "ins", "iso", "isp", "jar", "jnlp", "js", "jse", "lib", "lnk", "mde", "mjs", "msc", "msi", "msix", "msixbundle", "msp", "mst", "nsh", "pif", "ps1",
	"scr", "sct", "shb", "sys", "vb", "vbe", "vbs", "vhd", "vxd", "wsc", "wsf", "wsh", "xll",
	"app", "class", "deb", "elf", "macho", "pkg", "reg", "rpm", "sh", "url",
)

func set(names ...string) map[string]bool {
	all := make(map[string]bool, len(names))
	for _, name := range names {
		all[name] = true
	}
	return all
}

// A signature is the beginning of the files of a type.
type signature struct {
	name   string // of a program: its extension
	media  string // "" for a program
	prefix string
	also   string // further bytes
	at     int    // offset of also
}

var signatures = []signature{
	{name: "elf", prefix: "\x7fELF"},
	{name: "macho", prefix: "\xfe\xed\xfa\xce"},
	{name: "macho", prefix: "\xfe\xed\xfa\xcf"},
	{name: "macho", prefix: "\xce\xfa\xed\xfe"},
	{name: "macho", prefix: "\xcf\xfa\xed\xfe"},
	{name: "class", prefix: "\xca\xfe\xba\xbe"},
	{name: "lnk", prefix: "L\x00\x00\x00\x01\x14\x02\x00"},
	{name: "cab", prefix: "MSCF\x00\x00\x00\x00"},
	{name: "sh", prefix: "#!/"},
	{name: "sh", prefix: "#! /"},
	{media: "application/pdf", prefix: "%PDF-"},
	{media: "image/png", prefix: "\x89PNG\r\n\x1a\n"},
	{media: "image/jpeg", prefix: "\xff\xd8\xff"},
	{media: "image/gif", prefix: "GIF87a"},
	{media: "image/gif", prefix: "GIF89a"},
	{media: "image/webp", prefix: "RIFF", also: "WEBP", at: 8},
	{media: "application/zip", prefix: "PK\x03\x04"},
	{media: "application/zip", prefix: "PK\x05\x06"},
	{media: "application/gzip", prefix: "\x1f\x8b\x08"},
}

// typesWithSignature are the types whose files always have a signature.
var typesWithSignature = []string{"application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "application/zip", "application/gzip"}

// signatureOf returns the signature of the bytes; the zero value if none is known.
func signatureOf(content []byte) signature {
	if bytes.HasPrefix(content, []byte("MZ")) && bytes.IndexByte(content[:min(len(content), 64)], 0) > 0 {
		return signature{name: "exe"}
	}
	for _, s := range signatures {
		if bytes.HasPrefix(content, []byte(s.prefix)) && (s.also == "" || len(content) > s.at && bytes.HasPrefix(content[s.at:], []byte(s.also))) {
			return s
		}
	}
	return signature{}
}

// byExtension has the types of files by extension.
var byExtension = map[string]string{
	"avif": "image/avif", "bmp": "image/bmp", "csv": "text/csv", "doc": "application/msword",
	"docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
	"epub": "application/epub+zip", "geojson": "application/geo+json", "gif": "image/gif", "gpx": "application/gpx+xml", "gz": "application/gzip",
	"htm": "text/html", "html": "text/html", "ics": "text/calendar", "jpeg": "image/jpeg", "jpg": "image/jpeg", "json": "application/json",
	"kml": "application/vnd.google-earth.kml+xml", "kmz": "application/vnd.google-earth.kmz", "md": "text/markdown", "mp3": "audio/mpeg", "mp4": "video/mp4",
	"odp": "application/vnd.oasis.opendocument.presentation", "ods": "application/vnd.oasis.opendocument.spreadsheet", "odt": "application/vnd.oasis.opendocument.text",
	"pdf": "application/pdf", "png": "image/png", "ppt": "application/vnd.ms-powerpoint",
	"pptx": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
	"rtf":  "application/rtf", "svg": "image/svg+xml", "tif": "image/tiff", "tiff": "image/tiff", "tsv": "text/tab-separated-values", "txt": "text/plain",
	"vcf": "text/vcard", "wav": "audio/wav", "webp": "image/webp", "xls": "application/vnd.ms-excel",
	"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xml": "application/xml", "zip": "application/zip",
}

// htmlPrefixes begin a page; a space or ">" follows.
var htmlPrefixes = []string{
	"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a", "<style", "<title", "<b", "<body", "<br", "<p", "<!--",
}
