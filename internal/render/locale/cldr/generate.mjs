// Writes locales.txt and rules.txt, beside this file, from the data of CLDR:
//
//	npm install cldr-core@48.2.0 cldr-dates-full@48.2.0 cldr-numbers-full@48.2.0
//	node generate.mjs node_modules
//
// A line of locales.txt is a tag, a tab and what it says otherwise than the tag
// without its last part does; or a tag and the tag of which it is another name.
import { readFileSync, writeFileSync, existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const here = dirname(fileURLToPath(import.meta.url))
const from = process.argv[2]
const read = (...path) => JSON.parse(readFileSync(join(from, ...path), 'utf8'))
const at = (pattern) => (typeof pattern === 'string' ? pattern : pattern._value)
const styles = ['full', 'long', 'medium', 'short']
const months = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12']
const days = ['sun', 'mon', 'tue', 'wed', 'thu', 'fri', 'sat']

function describe(tag) {
  const { dates } = read('cldr-dates-full/main', tag, 'ca-gregorian.json').main[tag]
  const { numbers } = read('cldr-numbers-full/main', tag, 'numbers.json').main[tag]
  const { currencies } = read('cldr-numbers-full/main', tag, 'currencies.json').main[tag].numbers
  const g = dates.calendars.gregorian
  const one = {
    months: months.map((m) => g.months.format.wide[m]),
    shortMonths: months.map((m) => g.months.format.abbreviated[m]),
    days: days.map((d) => g.days[JSON.stringify(g.dateFormats).includes('cccc') ? 'stand-alone' : 'format'].wide[d]),
    shortDays: days.map((d) => g.days.format.abbreviated[d]),
    halves: ['am', 'pm'].map((h) => g.dayPeriods.format.abbreviated[h]),
    era: g.eras.eraAbbr['1'],
    dates: styles.map((s) => at(g.dateFormats[s])),
    time: at(g.timeFormats.short).replaceAll('\u202f', ' '), // as browsers do: mails stay ASCII
    joined: styles.map((s) => g['dateTimeFormats-atTime'].standard[s]),
    digits: numbers.defaultNumberingSystem,
    grouping: Number(numbers.minimumGroupingDigits),
  }
  if (!one.dates.some((d) => d.includes('G'))) delete one.era
  if (one.time.includes('B')) one.periods = periods(tag.split('-')[0], g.dayPeriods.format.abbreviated)
  for (const key of Object.keys(numbers)) {
    const system = key.match(/^symbols-numberSystem-(\w+)$/)?.[1]
    if (!system) continue
    const symbols = numbers[key]
    const currency = numbers['currencyFormats-numberSystem-' + system]
    one['numbers.' + system] = [symbols.decimal, symbols.group, symbols.minusSign,
      numbers['decimalFormats-numberSystem-' + system].standard,
      currency.standard, currency['standard-alphaNextToNumber'] ?? currency.standard,
      symbols.currencyDecimal ?? '', symbols.currencyGroup ?? '']
  }
  for (const [code, names] of Object.entries(currencies)) {
    if (names.symbol && names.symbol !== code && !code.startsWith('XX')) one['currency.' + code] = names.symbol
  }
  return one
}

// The name of each hour's part of the day.
function periods(language, names) {
  const { dayPeriodRuleSet } = read('cldr-core/supplemental/dayPeriods.json').supplemental
  const hours = []
  for (const [name, rule] of Object.entries(dayPeriodRuleSet[language])) {
    if (!rule._from) continue
    const [first, end] = [parseInt(rule._from), parseInt(rule._before)]
    for (let h = first; h !== end % 24 || h === first; h = (h + 1) % 24) hours[h] = names[name]
  }
  return hours
}

const core = read('cldr-core/coverageLevels.json').effectiveCoverageLevels
const tags = Object.keys(core).filter((t) => existsSync(join(from, 'cldr-dates-full/main', t)) && !t.includes('posix')).sort()
const all = new Map(tags.map((t) => [t, describe(t)]))
const lines = []
for (const [tag, one] of all) {
  let parent = tag
  do {
    parent = parent.slice(0, Math.max(0, parent.lastIndexOf('-')))
  } while (parent && !all.has(parent))
  const above = all.get(parent) ?? {}
  const own = {}
  for (const [k, v] of Object.entries(one)) if (JSON.stringify(above[k]) !== JSON.stringify(v)) own[k] = v
  for (const k of Object.keys(above)) if (!(k in one) && k.startsWith('currency.')) own[k] = k.slice('currency.'.length)
  lines.push(`${tag}\t${JSON.stringify(own)}`)
}
const likely = read('cldr-core/supplemental/likelySubtags.json').supplemental.likelySubtags
for (const [tag, full] of Object.entries(likely)) {
  const [language, script] = full.split('-')
  const long = [full, `${language}-${script}`].find((t) => all.has(t))
  if (tag.includes('-') && !tag.startsWith('und') && !all.has(tag) && long) lines.push(`${tag}\t${long}`)
}
for (const [tag, { _replacement: other }] of Object.entries(read('cldr-core/supplemental/aliases.json').supplemental.metadata.alias.languageAlias)) {
  if (!all.has(tag) && all.has(other) && !tag.startsWith('und')) lines.push(`${tag}\t${other}`)
}
writeFileSync(join(here, 'locales.txt'), lines.sort().join('\n') + '\n')

const { 'plurals-type-cardinal': rules } = read('cldr-core/supplemental/plurals.json').supplemental
const plurals = Object.entries(rules).map(([tag, forms]) => tag + '\t' + Object.entries(forms)
  .map(([form, rule]) => [form.replace('pluralRule-count-', ''), rule.replace(/@.*/, '').trim()])
  .filter(([form]) => form !== 'other').map((f) => f.join(': ')).join('; '))
const { numberingSystems } = read('cldr-core/supplemental/numberingSystems.json').supplemental
for (const [name, system] of Object.entries(numberingSystems)) if (system._type === 'numeric') plurals.push(`digits ${name}\t${system._digits}`)
const { fractions } = read('cldr-core/supplemental/currencyData.json').supplemental.currencyData
for (const [code, f] of Object.entries(fractions)) if (f._digits !== '2' && code !== 'DEFAULT') plurals.push(`fraction ${code}\t${f._digits}`)
writeFileSync(join(here, 'rules.txt'), plurals.sort().join('\n') + '\n')
