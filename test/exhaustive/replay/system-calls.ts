// Parses the output of `strace -f -yy -xx`: one call at a time, with arguments as text, bytes and descriptors. Refuses lines
// that it cannot parse; recorded-operations.ts translates the calls to disk operations.

export interface SystemCall {
  readonly name: string;
  readonly args: readonly string[];
  /** -1 for a failed call. */
  readonly result: number;
  /** The line, for messages. */
  readonly text: string;
}

/** @param trace the complete output, with all threads and children in the order in which their calls ended */
export function parseTrace(trace: string): SystemCall[] {
  const unfinished = new Map<string, string>();
  return trace.split('\n').flatMap((line) => {
    const [, thread = '', rest = ''] = /^(\d+) +(.*)$/.exec(line) ?? [];
    // Signals and exits of processes change no file.
    if (rest === '' || rest.startsWith('+++') || rest.startsWith('---')) return [];
    if (rest.endsWith('<unfinished ...>')) {
      unfinished.set(thread, rest.slice(0, -'<unfinished ...>'.length));
      return [];
    }
    const [resumed = '', name = ''] = /^<\.\.\. (\w+) resumed>/.exec(rest) ?? [];
    if (resumed === '') return [parseCall(rest)];
    const begun = unfinished.get(thread);
    unfinished.delete(thread);
    if (begun === undefined || !begun.startsWith(`${name}(`)) throw unreadable(line);
    return [parseCall(`${begun}${rest.slice(resumed.length)}`)];
  });
}

function parseCall(text: string): SystemCall {
  // Every string is hexadecimal, so brackets and commas are syntax.
  const [, name, args = '', result] = /^(\w+)\((.*)\) += (-?\d+|\?)/.exec(text) ?? [];
  if (name === undefined || result === undefined) throw unreadable(text);
  return { name, args: splitArguments(args), result: result === '?' ? -1 : Number(result), text };
}

function splitArguments(text: string): string[] {
  const args: string[] = [];
  let depth = 0;
  let begin = 0;
  for (let at = 0; at < text.length; at++) {
    if ('([{'.includes(text[at]!)) depth += 1;
    if (')]}'.includes(text[at]!)) depth -= 1;
    if (text[at] !== ',' || depth > 0) continue;
    args.push(text.slice(begin, at).trim());
    begin = at + 1;
  }
  const last = text.slice(begin).trim();
  return last === '' ? args : [...args, last];
}

/** @returns the bytes of a string argument */
export function bytesOf(arg: string | undefined): Buffer {
  const [, hex] = /^"((?:\\x[0-9a-f]{2})*)"$/.exec(arg ?? '') ?? [];
  // A string beyond the length limit of strace ends in dots, and is incomplete.
  if (hex === undefined) throw unreadable(`${arg}`);
  return fromHex(hex);
}

function fromHex(text: string): Buffer {
  return Buffer.from(text.replaceAll('\\x', ''), 'hex');
}

export interface Descriptor {
  readonly path: string;
  /** The file has no name any more, so no change to it outlives the process. */
  readonly deleted: boolean;
}

/** @returns the file of a descriptor argument; undefined for a descriptor without a path, such as a pipe */
export function descriptorOf(arg: string | undefined): Descriptor | undefined {
  const [, hex, deleted] =
    /^(?:-?\d+|AT_FDCWD)<((?:\\x[0-9a-f]{2})+)(?:<[^>]*>)?>(\(deleted\))?$/.exec(arg ?? '') ?? [];
  return hex === undefined ? undefined : { path: fromHex(hex).toString(), deleted: deleted !== undefined };
}

/** @returns every path of a call, in a string or of a descriptor */
export function pathsIn(call: SystemCall): string[] {
  return [...call.args.join(' ').matchAll(/["<]((?:\\x[0-9a-f]{2})+)/g)].map(([, hex = '']) =>
    fromHex(hex).toString('latin1'),
  );
}

function unreadable(line: string): Error {
  return new Error(`strace wrote what this test cannot read: ${line.slice(0, 300)}`);
}
