package filetype

import "bytes"

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

// A signature is how files of a kind begin.
type signature struct {
	name   string // the extension under which programs are refused
	media  string // "" of programs
	prefix string
	also   string // what stands further on
	at     int    // where
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

// signed are the types whose files begin as one of the signatures.
var signed = []string{"application/pdf", "image/png", "image/jpeg", "image/gif", "image/webp", "application/zip", "application/gzip"}

// signatureOf is how some bytes begin; the zero one is none that is known.
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

// byExtension are the types of files by how their names end.
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

// pages are how bytes begin that a browser takes for a page; a blank or ">" follows.
var pages = []string{
	"<!doctype html", "<html", "<head", "<script", "<iframe", "<h1", "<div", "<font", "<table", "<a", "<style", "<title", "<b", "<body", "<br", "<p", "<!--",
}
