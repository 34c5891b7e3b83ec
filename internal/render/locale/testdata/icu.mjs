// Writes what ICU says, a line each, for the tags given or all that it supports:
//
//	node icu.mjs cy ar ja > icu.txt
//
// kind, tag, what is asked, the answer.
import { readFileSync } from 'node:fs'
const lines = readFileSync(new URL('../cldr/locales.txt', import.meta.url), 'utf8').trim().split('\n').map((l) => l.split('\t')[0])
const tags = process.argv.length > 2 ? process.argv.slice(2) : lines
const moments = ['2026-03-08T16:05:00Z', '2026-11-20T00:30:00Z', '2027-01-02T12:00:00Z']
const numbers = ['0', '1', '2', '3', '5', '6', '11', '21', '100', '102', '1234', '1234567', '1000000', '1.5', '-1234.5678']
const amounts = ['0', '1', '-1234.5', '1234567.891']
const out = []
function supported(tag) {
  try {
    return Intl.DateTimeFormat.supportedLocalesOf(tag).length > 0
  } catch {
    return false // a tag of old
  }
}
for (const tag of tags) {
  if (!supported(tag)) continue
  const date = (options) => new Intl.DateTimeFormat(tag, { timeZone: 'UTC', calendar: 'gregory', ...options })
  for (const m of moments) {
    for (const style of ['full', 'long', 'medium', 'short']) {
      out.push(['date ' + style, tag, m, date({ dateStyle: style }).format(new Date(m))])
      out.push(['datetime ' + style, tag, m, date({ dateStyle: style, timeStyle: 'short' }).format(new Date(m))])
    }
    out.push(['time', tag, m, date({ timeStyle: 'short' }).format(new Date(m))])
  }
  for (const n of numbers) {
    out.push(['number', tag, n, new Intl.NumberFormat(tag, { roundingMode: 'halfEven' }).format(n)])
    out.push(['plural', tag, n, new Intl.PluralRules(tag).select(n)])
  }
  for (const c of ['GBP', 'EUR', 'USD', 'JPY', 'CHF', 'BHD']) {
    for (const n of amounts) out.push(['money ' + c, tag, n, new Intl.NumberFormat(tag, { style: 'currency', currency: c, roundingMode: 'halfEven' }).format(n)])
  }
}
process.stdout.write(out.map((l) => l.join('\t')).join('\n') + '\n')
