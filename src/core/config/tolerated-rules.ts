// Mistakes that a start takes, for hosts were set up with them, and `writ config check` refuses: placeholders that nobody
// fills in, programs, files and groups that are not there, words that are no more. Each would show itself in the night of the first
// release. Works on data of any shape; what is on the host is asked of whoever can look.
import { unknownText } from './config-errors.js';
import { at, type ConfigPath, type Finding, type Group, group, list, valuesAt } from './findings.js';

/** What only the host can say: each gives the reason why not, or nothing where it is there or cannot be seen. */
export interface HostLook {
  readonly program: (name: string) => string | undefined;
  /** Of commands that an agent of root runs as nobody; left out for another agent. */
  readonly programForNobody?: (name: string) => string | undefined;
  readonly file: (path: string) => string | undefined;
  /** Of a file with certificate authorities: what no connection could use. */
  readonly authorities: (path: string) => string | undefined;
  readonly directory: (path: string) => string | undefined;
  readonly group: (name: string) => string | undefined;
}

/**
 * @param root of a configuration that names none
 * @param look left out: nothing is asked of the host
 */
export function* toleratedRules(data: unknown, root: string, look: HostLook | undefined): Generator<Finding> {
  const file = group(data);
  yield* placeholderRules(file);
  yield* oldWords(file);
  if (look === undefined) return;
  yield* rootRules(file, root, look);
  yield* programRules(file, look);
  yield* fileRules(file, look);
  yield* authorityRules(file, look);
  yield* accountRules(file, look);
}

const beforeSwap = ['candidate', 'current', 'bundle', 'scratch'];
const behindSwap = ['current', 'bundle', 'scratch'];

/** Commands of a user, and what is filled in there; those of drivers are the drivers' to judge. */
const commandPlaces: Readonly<Record<string, readonly string[]>> = {
  'bundles.*.checks.*.run': beforeSwap,
  'workers.*.canary.run': beforeSwap,
  'workers.*.canary.start': beforeSwap,
  'workers.*.canary.probe': beforeSwap,
  'workers.*.load.run': behindSwap,
  // `serial` and `source` are of the stamps of a release; a bundle may be named behind a colon.
  'workers.*.probe.run': [...behindSwap, 'worker', 'serial', 'source'],
  // Refused there in words of their own.
  'onStale.run': ['current', 'scratch', 'candidate', 'bundle'],
  'onFresh.run': ['current', 'scratch', 'candidate', 'bundle'],
};

/** A shell's `${name}` is none of ours. */
const placeholder = /(?<!\$)\{([a-z]+)(?::[a-z0-9._-]+)?\}/g;

function* placeholderRules(file: Group): Generator<Finding> {
  for (const [place, known] of Object.entries(commandPlaces)) {
    for (const { path, text } of textsAt(file, `${place}.*`)) {
      const named = [...text.matchAll(placeholder)].map(([, name = '']) => name);
      for (const name of named.filter((one) => !known.includes(one)))
        yield at(path, unknownText('placeholder', name, known));
    }
  }
}

function* oldWords(file: Group): Generator<Finding> {
  for (const { path, text } of textsAt(file, 'workers.*.confirm')) {
    if (text !== 'optional') continue;
    yield at(path, '`optional` is taken as `warn`: write `warn`, or `accept` to hear nothing of it');
  }
}

const driverCommands = ['workers.*.reset.run', 'workers.*.reset.restart.run', 'workers.*.reset.members.run'];
const commands = [...Object.keys(commandPlaces), ...driverCommands];

function* programRules(file: Group, look: HostLook): Generator<Finding> {
  for (const place of commands) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const [program] = list(value);
      if (typeof program !== 'string' || program === '' || program.includes('{')) continue;
      const why = look.program(program);
      if (why !== undefined) yield at([...path, 0], why);
    }
  }
}

const authorityPlaces = ['repository.ca', 'repository.*.ca', 'fleet.ca', 'proxy.ca'];

const filePlaces = [
  'bundles.*.checks.*.schema',
  'workers.*.reset.authorizationFile',
  'proxy.credentialsFile',
  ...['bundles.*.checks.*', 'workers.*.canary', 'workers.*.load', 'workers.*.probe'].flatMap((hook) => [
    `${hook}.binds.*`,
    `${hook}.writable.*`,
  ]),
];

/** Where things are installed, and no command of ours leaves its output. */
const installed = /^\/(etc|usr|opt)\//;

function* fileRules(file: Group, look: HostLook): Generator<Finding> {
  const named = filePlaces.flatMap((place) => textsAt(file, place));
  const given = commands.flatMap((place) =>
    textsAt(file, `${place}.*`).filter(({ path, text }) => path.at(-1) !== 0 && installed.test(text)),
  );
  for (const { path, text } of [...named, ...given]) {
    // A schema may be in the bundle; a glob or a placeholder names nothing yet.
    if (!text.startsWith('/') || /[*?[{]/.test(text)) continue;
    const why = look.file(text);
    if (why !== undefined) yield at(path, why);
  }
}

function* authorityRules(file: Group, look: HostLook): Generator<Finding> {
  for (const { path, text } of authorityPlaces.flatMap((place) => textsAt(file, place))) {
    const why = text.startsWith('/') ? look.authorities(text) : undefined;
    if (why !== undefined) yield at(path, why);
  }
}

/** A host that has a history of roots starts all the same. */
function* rootRules(file: Group, preset: string, look: HostLook): Generator<Finding> {
  const { root = preset } = file;
  const why = typeof root === 'string' ? look.file(root) : undefined;
  if (why !== undefined)
    yield at(['root'], `${why}: a new host trusts nobody without the publisher's root; copy it there`);
}

/** An agent runs without the socket of a group that is none, and who was to look hears nothing. */
function* accountRules(file: Group, look: HostLook): Generator<Finding> {
  for (const { path, text } of textsAt(file, 'read.group')) {
    const why = look.group(text);
    if (why !== undefined) yield at(path, why);
  }
}

/** @param place as `workers.*.load.run`. @returns every text there */
export function textsAt(file: Group, place: string): { readonly path: ConfigPath; readonly text: string }[] {
  return valuesAt(file, place.split('.')).flatMap(({ path, value }) =>
    typeof value === 'string' ? [{ path, text: value }] : [],
  );
}
