// Rules that a JSON Schema cannot express: names that must exist or differ, keys that exclude each other, paths that must not
// overlap. Works also on data that violates the schema, so that one run finds every mistake.
import { changeRules, checkBounds, contactRules, proxyRules, socketRule } from './config-bounds.js';
import { nearestName, unknownNameText } from './config-errors.js';
import type { Schema } from './config-keys.js';
import { commonResetKeys, configSchema, type DriverSchema } from './config-schema.js';
import { asGroup, asList, at, type ConfigPath, type Finding, type Group, valuesAt } from './findings.js';
import { globBoundRule, programRule, sandboxRules, withFinalSlash } from './hook-rules.js';
import { stampRules } from './probe-rules.js';
import { processRules } from './process-rules.js';

export interface RuleOptions {
  readonly drivers: readonly DriverSchema[];
  /** @returns why a cron expression is invalid; undefined if it is valid. A parameter, because core has no cron parser */
  readonly validateCron: (expression: string, timeZone: string | undefined) => string | undefined;
  readonly defaults: { readonly state: string; readonly run: string };
}

/** @param data the parsed file, of any shape. @returns a finding for each violation of a rule */
export function checkRules(data: unknown, options: RuleOptions): Finding[] {
  const file = asGroup(data);
  return [
    ...repositoryRules(file),
    ...pathRules(file, options),
    ...pollRules(file, options),
    ...checkBounds(configSchema, data, []),
    ...staleRules(file),
    ...reportRules(file),
    ...fleetRules(file),
    ...proxyRules(file),
    ...contactRules(file),
    ...bundleRules(file),
    ...togetherRules(file),
    ...workerRules(file, options),
    ...sandboxRules(file, options.defaults),
  ];
}

function* repositoryRules({ repository }: Group): Generator<Finding> {
  yield* mirrorRules(repository, ['repository']);
  const seen = new Set<string>();
  for (const [index, mirror] of asList(repository).entries()) {
    yield* mirrorRules(mirror, ['repository', index]);
    const url = typeof mirror === 'string' ? mirror : asGroup(mirror)['url'];
    if (typeof url !== 'string' || !URL.canParse(url)) continue;
    const { href } = new URL(url);
    // A URL with and without a slash at its end is one mirror, which would get each request twice.
    const place = href.endsWith('/') ? href : `${href}/`;
    if (seen.has(place)) yield at(['repository', index], 'is named twice');
    seen.add(place);
  }
}

function* mirrorRules(mirror: unknown, path: ConfigPath): Generator<Finding> {
  if (typeof mirror === 'string') yield* urlRules(mirror, path);
  const { url, ca, redirects } = asGroup(mirror);
  yield* urlRules(url, [...path, 'url']);
  const isFile = typeof url === 'string' && url.slice(0, url.indexOf(':')) === 'file';
  if (isFile && redirects !== undefined) yield at([...path, 'redirects'], 'is only used with http and https');
  if (isFile && ca !== undefined) yield at([...path, 'ca'], 'is only used with https');
}

function* urlRules(text: unknown, path: ConfigPath): Generator<Finding> {
  if (typeof text !== 'string') return;
  if (!URL.canParse(text)) return yield at(path, 'must be a URL, as https://policy.example.net/');
  const url = new URL(text);
  if (!['http:', 'https:', 'file:'].includes(url.protocol))
    yield at(path, 'must begin with https, http or file');
  // The URL is in logs and in the output of `config show`.
  if (url.username !== '' || url.password !== '') yield at(path, 'must not carry a name or password');
  if (url.search !== '' || url.hash !== '') yield at(path, 'must not have a part after ? or #');
  if (url.protocol === 'file:' && url.host !== '')
    yield at(path, 'must have three slashes, as file:///media/usb');
}

function* pathRules(file: Group, options: RuleOptions): Generator<Finding> {
  const { socket, run, state = options.defaults.state, policy } = file;
  if (typeof socket === 'string') yield* socketRule(socket, ['socket']);
  else if (typeof run === 'string') yield* socketRule(`${run}/agent.sock`, ['run']);
  if (file['read'] !== undefined && typeof run === 'string' && typeof socket === 'string')
    yield* socketRule(`${run}/read.sock`, ['run']);
  if (typeof state !== 'string' || typeof policy !== 'string') return;
  const [inner, outer] = [withFinalSlash(policy), withFinalSlash(state)];
  // Workers read the policy directory: apart from `policy/` it must not be in, or contain, the private state directory.
  if ((inner.startsWith(outer) && inner !== `${outer}policy/`) || outer.startsWith(inner)) {
    yield at(['policy'], `must be ${outer}policy or lie outside ${outer} and not around it`);
  }
}

function* pollRules(file: Group, options: RuleOptions): Generator<Finding> {
  const { every, cron, timeZone } = asGroup(file['poll']);
  if (every !== undefined && cron !== undefined)
    yield at(['poll'], 'has `every` and `cron`: give one of them');
  if (timeZone !== undefined && cron === undefined)
    yield at(['poll', 'timeZone'], 'is only used with `cron`');
  if (file['poll'] !== undefined && every === undefined && cron === undefined)
    yield at(['poll'], 'needs `every` or `cron`');
  if (typeof cron !== 'string') return;
  const wrong = options.validateCron(cron, typeof timeZone === 'string' ? timeZone : undefined);
  if (wrong !== undefined) yield at(['poll', 'cron'], `is not a schedule: ${wrong}`);
}

/** Rejects commands that would never run, because an operator would notice that only when the command is needed. */
function* staleRules(file: Group): Generator<Finding> {
  for (const [key, needed] of Object.entries({ onStale: 'maxStale', onFresh: 'onStale' })) {
    if (file[key] === undefined) continue;
    const isOfRelease = needed === 'maxStale' && asGroup(file['release'])[needed] !== undefined;
    if (file[needed] === undefined && !isOfRelease) yield at([key], `is only used with \`${needed}\``);
    const { run } = asGroup(file[key]);
    yield* programRule(run, [key, 'run']);
    for (const [index, argument] of asList(run).entries()) {
      if (typeof argument !== 'string' || !/\{(candidate|bundle)\}/.test(argument)) continue;
      yield at([key, 'run', index], 'may have {current} and {scratch} only');
    }
  }
}

function* reportRules({ metrics }: Group): Generator<Finding> {
  if (metrics === undefined) return;
  const { listen, socket } = asGroup(metrics);
  if ((listen === undefined) === (socket === undefined))
    yield at(['metrics'], 'must have either listen or socket');
  if (typeof listen === 'string' && Number(listen.slice(listen.lastIndexOf(':') + 1)) > 65_535)
    yield at(['metrics', 'listen'], 'must have a port up to 65535');
  if (typeof socket === 'string') yield* socketRule(socket, ['metrics', 'socket']);
}

/** Requires TLS except on loopback: an eavesdropper would get the token and the refusals of every host. */
function* fleetRules({ fleet }: Group): Generator<Finding> {
  const { url, ca } = asGroup(fleet);
  yield* urlRules(url, ['fleet', 'url']);
  if (typeof url !== 'string' || !URL.canParse(url)) return;
  const { protocol, hostname } = new URL(url);
  const isLoopback = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(hostname);
  if (protocol !== 'https:' && !(protocol === 'http:' && isLoopback))
    yield at(['fleet', 'url'], 'must begin with https (http only to a loopback address)');
  if (protocol !== 'https:' && ca !== undefined) yield at(['fleet', 'ca'], 'is only used with https');
}

function bundleNames(file: Group): string[] {
  const names = asList(file['bundles']).map((one) => asGroup(one)['name']);
  return names.filter((one) => typeof one === 'string');
}

function* bundleRules(file: Group): Generator<Finding> {
  yield* duplicateNameRules(file, 'bundles');
  for (const { path, value } of valuesAt(file, ['bundles', '*', 'checks', '*'])) {
    const { run, parse, schema, change } = asGroup(value);
    if ([run, parse, change].filter((one) => one !== undefined).length !== 1)
      yield at(path, 'needs either `run`, `parse` or `change`');
    yield* changeRules(change, [...path, 'change']);
    for (const files of [['parse'], ['change', 'files']])
      for (const glob of valuesAt(value, [...files, '*']))
        yield* globBoundRule(glob.value, [...path, ...glob.path]);
    if (parse === undefined && schema !== undefined)
      yield at([...path, 'schema'], 'is only used with `parse`');
    yield* programRule(run, [...path, 'run']);
  }
}

function* duplicateNameRules(file: Group, key: 'bundles' | 'workers'): Generator<Finding> {
  const seen = new Set<string>();
  for (const { path, value } of valuesAt(file, [key, '*', 'name'])) {
    if (typeof value !== 'string') continue;
    if (seen.has(value)) yield at(path, `"${value}" is the name of an earlier one`);
    seen.add(value);
  }
}

function* togetherRules(file: Group): Generator<Finding> {
  const known = bundleNames(file);
  const seen = new Set<string>();
  for (const { path, value } of valuesAt(file, ['together', '*', '*'])) {
    if (typeof value !== 'string') continue;
    if (!known.includes(value)) yield at(path, unknownNameText('bundle', value, known));
    if (seen.has(value)) yield at(path, `"${value}" is in a set already`);
    seen.add(value);
  }
}

function* workerRules(file: Group, options: RuleOptions): Generator<Finding> {
  const known = bundleNames(file);
  yield* duplicateNameRules(file, 'workers');
  for (const [index, value] of asList(file['workers']).entries()) {
    const worker = asGroup(value);
    const path = ['workers', index];
    const uses = asList(worker['uses']).filter((one) => typeof one === 'string');
    for (const [place, bundle] of asList(worker['uses']).entries()) {
      if (typeof bundle !== 'string') continue;
      if (!known.includes(bundle))
        yield at([...path, 'uses', place], unknownNameText('bundle', bundle, known));
      else if (uses.indexOf(bundle) !== place) yield at([...path, 'uses', place], 'is named twice');
    }
    yield* whenRules(worker, uses, path);
    yield* hookRules(worker, uses, path);
    yield* stampRules(worker, uses, path);
    yield* resetRules(worker, path, file, options);
    yield* processRules(worker, path, namedDrivers(worker['reset'], options.drivers)[0]);
  }
}

function* whenRules(worker: Group, uses: readonly string[], path: ConfigPath): Generator<Finding> {
  const { reset, restart } = asGroup(worker['when']);
  yield* globRules(worker['when'], uses, [...path, 'when']);
  yield* globRules(reset, uses, [...path, 'when', 'reset']);
  yield* globRules(restart, uses, [...path, 'when', 'restart']);
  if (worker['reset'] !== undefined) return;
  if (restart !== undefined)
    yield at([...path, 'when', 'restart'], 'is only used with `reset`, which has the driver');
  for (const key of ['rolling', 'onDead'])
    if (worker[key] !== undefined) yield at([...path, key], 'is only used with `reset`');
}

function* globRules(globs: unknown, uses: readonly string[], path: ConfigPath): Generator<Finding> {
  for (const [index, glob] of asList(globs).entries()) {
    if (typeof glob !== 'string') continue;
    yield* globBoundRule(glob, [...path, index]);
    const prefix = /^([^:/*]*):/.exec(glob)?.[1];
    if (prefix === undefined && uses.length > 1) {
      yield at([...path, index], 'must begin with BUNDLE: because `uses` has several bundles');
    }
    if (prefix !== undefined && !uses.includes(prefix)) {
      yield at([...path, index], `${unknownNameText('bundle', prefix, uses)} (it is not in \`uses\`)`);
    }
  }
}

function* hookRules(worker: Group, uses: readonly string[], path: ConfigPath): Generator<Finding> {
  const { load, reset, probe } = worker;
  if (load === undefined && reset === undefined && probe === undefined) {
    yield at(path, 'needs `load`, `reset` or `probe`: no worker would be notified');
  }
  yield* canaryRules(worker['canary'], [...path, 'canary']);
  for (const [key, inner] of groupCommands) {
    const run = asGroup(worker[key])[inner];
    yield* programRule(run, [...path, key, inner]);
    if (uses.length < 2) continue;
    for (const [index, argument] of asList(run).entries()) {
      if (typeof argument !== 'string' || !argument.includes('{bundle}')) continue;
      const other = key === 'canary' ? '{candidate}' : '{current}';
      const text = `{bundle} needs \`uses\` to have a single bundle; use ${other}/BUNDLE`;
      yield at([...path, key, inner, index], text);
    }
  }
}

const groupCommands = [
  ['canary', 'run'],
  ['canary', 'start'],
  ['canary', 'probe'],
  ['load', 'run'],
  ['probe', 'run'],
] as const;

function* canaryRules(canary: unknown, path: ConfigPath): Generator<Finding> {
  if (canary === undefined) return;
  const { run, start, probe } = asGroup(canary);
  if ((run === undefined) === (start === undefined)) yield at(path, 'needs either `run` or `start`');
  if (start !== undefined && probe === undefined)
    yield at(path, 'needs `probe`, which tests the started worker');
  if (start === undefined && probe !== undefined) yield at([...path, 'probe'], 'is only used with `start`');
}

function* resetRules(worker: Group, path: ConfigPath, file: Group, options: RuleOptions): Generator<Finding> {
  if (worker['reset'] === undefined || typeof worker['reset'] !== 'object') return;
  const names = options.drivers.map((driver) => driver.name);
  const named = namedDrivers(worker['reset'], options.drivers);
  const properties = { ...(named[0]?.properties as Schema['properties']), ...commonResetKeys };
  yield* checkBounds({ properties }, worker['reset'], [...path, 'reset']);
  if (named.length > 1) {
    const found = named.map((driver) => driver.name).join(' and ');
    yield at([...path, 'reset'], `needs exactly one of ${names.join(', ')}; it has ${found}`);
  }
  if (named.length === 0) {
    const near = Object.keys(asGroup(worker['reset'])).map((key) => nearestName(key, names));
    const hint = near.find((name) => name !== undefined);
    const guess = hint === undefined ? '' : `; did you mean "${hint}"?`;
    yield at([...path, 'reset'], `needs exactly one of ${names.join(', ')}${guess}`);
  }
  const { native } = asGroup(worker['reset']);
  if (named[0]?.name !== 'native' || typeof native !== 'string') return;
  const run = typeof file['run'] === 'string' ? file['run'] : options.defaults.run;
  yield* socketRule(`${run}/workers/${native}.sock`, [...path, 'reset', 'native']);
  const before = asList(file['workers']).slice(0, Number(path[1]));
  if (before.some((one) => asGroup(asGroup(one)['reset'])['native'] === native)) {
    yield at([...path, 'reset', 'native'], `"${native}" is the socket of an earlier group`);
  }
}

/**
 * A key may name a driver and be an option of another one: `signal` with `supervisord` is the signal to send.
 * @returns the drivers that a `reset:` names; exactly one in a valid file
 */
export function namedDrivers(reset: unknown, drivers: readonly DriverSchema[]): DriverSchema[] {
  const named = drivers.filter((driver) => Object.hasOwn(asGroup(reset), driver.name));
  const isOption = (name: string): boolean =>
    named.some((other) => other.name !== name && Object.hasOwn(other.properties, name));
  return named.filter(({ name }) => !isOption(name));
}
