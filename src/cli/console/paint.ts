// Terminal colours: whether a stream accepts them, and coloured text. Prints nothing.
import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import type { Surroundings } from './command.js';
import type { CommonFlags } from './flags.js';

export type Style = 'green' | 'yellow' | 'red' | 'dim' | 'bold';
export type Paint = (style: Style, text: string) => string;

/** @returns a function that colours a text for this stream, or returns it unchanged if the stream has no colours */
export function painter(
  choice: CommonFlags['color'],
  stream: NodeJS.WriteStream,
  env: Surroundings['env'],
): Paint {
  return isPainted(choice, stream, env)
    ? (style, text) => styleText(style, text, { validateStream: false })
    : (_style, text) => text;
}

/** @returns whether text on this stream has colours */
export function isPainted(
  choice: CommonFlags['color'],
  stream: Partial<NodeJS.WriteStream>,
  env: Surroundings['env'],
): boolean {
  return choice === 'always' || (choice === 'auto' && takesColors(stream, env));
}

/** @returns true if the stream accepts colours, as styleText decides, but from the given environment */
function takesColors(stream: Partial<NodeJS.WriteStream>, env: Surroundings['env']): boolean {
  if (env['FORCE_COLOR'] !== undefined) return WriteStream.prototype.getColorDepth(env) > 2;
  return stream.isTTY === true && (stream.getColorDepth?.(env) ?? 4) > 2;
}
