// Which part of `policy/` a mount or a path of another process belongs to: reads the kernel's table of mounts and
// translates paths into places of a file system, where a bind mount, another mount namespace, a subvolume and a
// state directory that is mounted itself all look the same. Pure: text in, verdicts out; never reads /proc.

/** One line of mountinfo (proc(5)), as far as it matters here. */
export interface Mount {
  /** `major:minor` of the file system. */
  readonly device: string;
  /** Which directory (or file) of the file system is mounted. */
  readonly root: string;
  readonly mountPoint: string;
  /** Of an overlay: what is below it. */
  readonly lowerDirectories: readonly string[];
}

/** A file by its file system and the path within it: the same from every mount namespace. */
export interface FilePlace {
  readonly device: string;
  readonly path: string;
}

/** A directory that collection would remove. */
export type Held =
  | { readonly kind: 'generation'; readonly generation: number }
  | { readonly kind: 'tree'; readonly bundle: string; readonly tree: string };

/** `mount`: mounted somewhere; `cwd`, `root`: of a process; `open`: a directory or file that a process has open. */
export type HoldKind = 'mount' | 'cwd' | 'root' | 'open';

export interface Holder {
  readonly held: Held;
  readonly what: HoldKind;
  /** Where it is mounted, or the path as the kernel names it. */
  readonly path: string;
  /** Left out for a mount of the host itself, which no process owns. */
  readonly pid?: number;
  readonly command?: string;
}

/**
 * Reads a table of mounts; a line that is not one (the last of a text that was cut) is left out.
 * @param under root directory of the process whose table it is: its mount points are relative to that
 */
export function parseMountInfo(text: string, under = '/'): Mount[] {
  return text.split('\n').flatMap((line) => parseMount(line, under) ?? []);
}

function parseMount(line: string, under: string): Mount | undefined {
  // id parent major:minor root mountpoint options [optional fields] - type source superoptions
  const [, , device, root, mountPoint, ...rest] = line.split(' ');
  const dash = rest.indexOf('-');
  if (device === undefined || root === undefined || mountPoint === undefined || dash < 0) return undefined;
  const [type, , options = ''] = rest.slice(dash + 1);
  return {
    device,
    root: unescapeOctal(root),
    mountPoint: joinPath(under, unescapeOctal(mountPoint)),
    lowerDirectories: type === 'overlay' ? lowerDirectories(unescapeOctal(options)) : [],
  };
}

/** The kernel writes space, tab, line feed, backslash and # as three octal digits. */
function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(Number.parseInt(octal, 8)));
}

function lowerDirectories(options: string): string[] {
  return options
    .split(/(?<!\\),/)
    .flatMap((option) => /^lowerdir\+?=(.*)$/s.exec(option)?.[1]?.split(/(?<!\\):+/) ?? [])
    .map((path) => path.replace(/\\(.)/gs, '$1'))
    .filter((path) => path.startsWith('/'));
}

function joinPath(directory: string, path: string): string {
  if (directory === '/') return path;
  return path === '/' ? directory : `${directory}${path}`;
}

/**
 * @param path absolute, without links, as the kernel names it
 * @param mounts the table of the mount namespace that the path is of
 * @returns undefined where no mount of the table has the path
 */
export function placeOf(path: string, mounts: readonly Mount[]): FilePlace | undefined {
  let found: Mount | undefined;
  // Of two mounts on one point the later one is on top.
  for (const mount of mounts) {
    if (mount.mountPoint.length < (found?.mountPoint.length ?? 0)) continue;
    if (restBelow(path, mount.mountPoint) !== undefined) found = mount;
  }
  if (found === undefined) return undefined;
  return { device: found.device, path: joinPath(found.root, `/${restBelow(path, found.mountPoint)}`) };
}

/** @returns what follows the directory in the path, without a slash; undefined for a path that is not in it */
function restBelow(path: string, directory: string): string | undefined {
  if (directory === '/') return path.slice(1);
  if (path === directory) return '';
  return path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : undefined;
}

/** Behind the path of what was removed while somebody had it: links of /proc, and mountinfo. */
const removed = /(?: \(deleted\)|\/\/deleted)$/;

/**
 * @param policy the place of `policy/`
 * @returns the generation or tree that the place is, or is in; undefined for `policy/` itself, what is above it and
 *   all else: who holds those holds no generation
 */
export function heldAt(place: FilePlace, policy: FilePlace): Held | undefined {
  if (place.device !== policy.device) return undefined;
  const rest = restBelow(place.path.replace(removed, ''), policy.path);
  const [kind, first = '', second] = rest?.split('/') ?? [];
  if (kind === 'generations' && /^[1-9][0-9]{0,15}$/.test(first)) {
    return { kind: 'generation', generation: Number(first) };
  }
  if (kind === 'bundles' && first !== '' && second !== undefined && second !== '') {
    return { kind: 'tree', bundle: first, tree: second };
  }
  return undefined;
}
