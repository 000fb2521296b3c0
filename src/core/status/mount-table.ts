// Finds the generation or tree of `policy/` that a mount or a path of another process uses. It parses the kernel's mount
// table and translates each path into a file system and a path within it, because this location is the same for a bind mount,
// another mount namespace, a subvolume and a mounted state directory. Never reads /proc: its callers pass the text.

/** The members of one line of mountinfo (proc(5)) that the translation needs. */
export interface Mount {
  /** `major:minor` of the file system. */
  readonly device: string;
  /** Directory or file of the file system that is mounted. */
  readonly root: string;
  readonly mountPoint: string;
  /** Absolute paths of the lower directories of an overlay; empty for other types. */
  readonly lowerDirectories: readonly string[];
}

/** The file system of a file and its path within it: the same in every mount namespace. */
export interface FileLocation {
  readonly device: string;
  readonly path: string;
}

/** A directory that garbage collection can remove. */
export type CollectableDirectory =
  | { readonly kind: 'generation'; readonly generation: number }
  | { readonly kind: 'tree'; readonly bundle: string; readonly tree: string };

/** `mount`: a mount; `cwd`, `root`: a directory of a process; `open`: a file or directory that a process has open. */
export type UseKind = 'mount' | 'cwd' | 'root' | 'open';

export interface GenerationUser {
  readonly directory: CollectableDirectory;
  readonly what: UseKind;
  /** The mount point, or the path as the kernel names it. */
  readonly path: string;
  /** Left out for a mount of the host itself, because no process owns it. */
  readonly pid?: number;
  readonly command?: string;
}

/**
 * Parses a mount table. It skips malformed lines, because the last line of a truncated text is incomplete.
 * @param under root directory of the process that the table belongs to: mount points are relative to it
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
 * @param mounts the table of the mount namespace of the path
 * @returns undefined if no mount of the table contains the path
 */
export function locateFile(path: string, mounts: readonly Mount[]): FileLocation | undefined {
  let found: Mount | undefined;
  // The later of two mounts on one mount point covers the earlier.
  for (const mount of mounts) {
    if (mount.mountPoint.length < (found?.mountPoint.length ?? 0)) continue;
    if (relativePathIn(path, mount.mountPoint) !== undefined) found = mount;
  }
  if (found === undefined) return undefined;
  return { device: found.device, path: joinPath(found.root, `/${relativePathIn(path, found.mountPoint)}`) };
}

/** @returns the path relative to the directory, `''` for the directory itself; undefined for a path outside it */
function relativePathIn(path: string, directory: string): string | undefined {
  if (directory === '/') return path.slice(1);
  if (path === directory) return '';
  return path.startsWith(`${directory}/`) ? path.slice(directory.length + 1) : undefined;
}

/** The kernel's mark after the path of a removed file that is still open: in links of /proc, and in mountinfo. */
const deletedSuffix = /(?: \(deleted\)|\/\/deleted)$/;

/**
 * @param policy location of `policy/`
 * @returns the generation or tree at or above the location. Undefined for `policy/` itself, the directories above it and
 *   all other files, because a use of these keeps no generation
 */
export function findCollectableDirectory(
  location: FileLocation,
  policy: FileLocation,
): CollectableDirectory | undefined {
  if (location.device !== policy.device) return undefined;
  const rest = relativePathIn(location.path.replace(deletedSuffix, ''), policy.path);
  const [kind, first = '', second] = rest?.split('/') ?? [];
  if (kind === 'generations' && /^[1-9][0-9]{0,15}$/.test(first)) {
    return { kind: 'generation', generation: Number(first) };
  }
  if (kind === 'bundles' && first !== '' && second !== undefined && second !== '') {
    return { kind: 'tree', bundle: first, tree: second };
  }
  return undefined;
}
