// Colours of a terminal: whether a stream takes them, and text in them. It writes nothing, and knows no outcome.
import { WriteStream } from 'node:tty';
import { styleText } from 'node:util';
import type { Surroundings } from './command.js';
import type { CommonFlags } from './flags.js';

export type Style = 'green' | 'yellow' | 'red' | 'dim' | 'bold';
export type Paint = (style: Style, text: string) => string;

/** @returns what colours a text for this stream, or leaves it as it is */
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
