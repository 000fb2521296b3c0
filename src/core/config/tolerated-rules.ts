// Mistakes that `writ config check` rejects and a start accepts, because existing hosts may have them: unknown placeholders,
// missing programs, files and groups, and retired values. Without this check they would show only at the first release.
// Works on data of any shape; a HostFactSource provides the facts about the host.
import { unknownNameText } from './config-errors.js';
import { asGroup, asList, at, type ConfigPath, type Finding, type Group, valuesAt } from './findings.js';

/** Facts about the host. Each function returns why the item is missing or unusable; undefined if it exists or cannot be read. */
export interface HostFactSource {
  readonly program: (name: string) => string | undefined;
  /** For commands that run as the user `nobody`; absent if the agent is not root. */
  readonly programForUnprivilegedUser?: (name: string) => string | undefined;
  readonly file: (path: string) => string | undefined;
  /** Whether a file with certificate authorities is usable for a connection. */
  readonly authorities: (path: string) => string | undefined;
  readonly directory: (path: string) => string | undefined;
  readonly group: (name: string) => string | undefined;
}

/**
 * @param root the default path of the root
 * @param hostFacts the facts about the host; undefined: only rules that need none
 * @returns a finding for each mistake
 */
export function* toleratedRules(
  data: unknown,
  root: string,
  hostFacts: HostFactSource | undefined,
): Generator<Finding> {
  const file = asGroup(data);
  yield* placeholderRules(file);
  yield* retiredValueRules(file);
  if (hostFacts === undefined) return;
  yield* rootRules(file, root, hostFacts);
  yield* programRules(file, hostFacts);
  yield* fileRules(file, hostFacts);
  yield* authorityRules(file, hostFacts);
  yield* accountRules(file, hostFacts);
}

const beforeSwap = ['candidate', 'current', 'bundle', 'scratch'];
const afterSwap = ['current', 'bundle', 'scratch'];

/** Paths of configured commands, with their placeholders. Drivers check the commands of `reset`. */
const commandPlaces: Readonly<Record<string, readonly string[]>> = {
  'bundles.*.checks.*.run': beforeSwap,
  'workers.*.canary.run': beforeSwap,
  'workers.*.canary.start': beforeSwap,
  'workers.*.canary.probe': beforeSwap,
  'workers.*.load.run': afterSwap,
  // `serial` and `source` are the stamps of a release; a bundle name may follow after a colon.
  'workers.*.probe.run': [...afterSwap, 'worker', 'serial', 'source'],
  // config-rules rejects `candidate` and `bundle` here with a message of its own.
  'onStale.run': ['current', 'scratch', 'candidate', 'bundle'],
  'onFresh.run': ['current', 'scratch', 'candidate', 'bundle'],
};

/** Does not match `${name}` of a shell. */
const placeholder = /(?<!\$)\{([a-z]+)(?::[a-z0-9._-]+)?\}/g;

function* placeholderRules(file: Group): Generator<Finding> {
  for (const [place, known] of Object.entries(commandPlaces)) {
    for (const { path, text } of textsAt(file, `${place}.*`)) {
      const named = [...text.matchAll(placeholder)].map(([, name = '']) => name);
      for (const name of named.filter((one) => !known.includes(one)))
        yield at(path, unknownNameText('placeholder', name, known));
    }
  }
}

function* retiredValueRules(file: Group): Generator<Finding> {
  for (const { path, text } of textsAt(file, 'workers.*.confirm')) {
    if (text !== 'optional') continue;
    yield at(path, '`optional` means `warn`: write `warn`, or `accept` to get no warning');
  }
}

const driverCommands = ['workers.*.reset.run', 'workers.*.reset.restart.run', 'workers.*.reset.members.run'];
const commands = [...Object.keys(commandPlaces), ...driverCommands];

function* programRules(file: Group, hostFacts: HostFactSource): Generator<Finding> {
  for (const place of commands) {
    for (const { path, value } of valuesAt(file, place.split('.'))) {
      const [program] = asList(value);
      if (typeof program !== 'string' || program === '' || program.includes('{')) continue;
      const why = hostFacts.program(program);
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

/** Directories with installed files, which no command of Writ writes to. */
const installationDirectory = /^\/(etc|usr|opt)\//;

function* fileRules(file: Group, hostFacts: HostFactSource): Generator<Finding> {
  const named = filePlaces.flatMap((place) => textsAt(file, place));
  const given = commands.flatMap((place) =>
    textsAt(file, `${place}.*`).filter(
      ({ path, text }) => path.at(-1) !== 0 && installationDirectory.test(text),
    ),
  );
  for (const { path, text } of [...named, ...given]) {
    // A schema may be in the bundle; a path with a glob or a placeholder cannot be checked yet.
    if (!text.startsWith('/') || /[*?[{]/.test(text)) continue;
    const why = hostFacts.file(text);
    if (why !== undefined) yield at(path, why);
  }
}

function* authorityRules(file: Group, hostFacts: HostFactSource): Generator<Finding> {
  for (const { path, text } of authorityPlaces.flatMap((place) => textsAt(file, place))) {
    const why = text.startsWith('/') ? hostFacts.authorities(text) : undefined;
    if (why !== undefined) yield at(path, why);
  }
}

/** Tolerated, because a host with trusted roots in its trust store starts without this file. */
function* rootRules(file: Group, preset: string, hostFacts: HostFactSource): Generator<Finding> {
  const { root = preset } = file;
  const why = typeof root === 'string' ? hostFacts.file(root) : undefined;
  if (why !== undefined)
    yield at(
      ['root'],
      `${why}: a new host cannot verify a release without the root of the publisher; copy it there`,
    );
}

/** For a missing group the agent does not create the read socket, so its members could not read the status. */
function* accountRules(file: Group, hostFacts: HostFactSource): Generator<Finding> {
  for (const { path, text } of textsAt(file, 'read.group')) {
    const why = hostFacts.group(text);
    if (why !== undefined) yield at(path, why);
  }
}

/** @param place as `workers.*.load.run`. @returns each text at a matching path; other values are left out */
export function textsAt(file: Group, place: string): { readonly path: ConfigPath; readonly text: string }[] {
  return valuesAt(file, place.split('.')).flatMap(({ path, value }) =>
    typeof value === 'string' ? [{ path, text: value }] : [],
  );
}
