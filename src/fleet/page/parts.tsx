// Components of all pages: times, untrusted texts, badges, tables that scroll. Untrusted text is shown with its invisible characters
// written out, and isolated from the direction of the surrounding text.
import type { ComponentChildren, VNode } from 'preact';
import { isoTime } from '../../core/text/iso-time.js';
import { printable } from '../../core/text/printable.js';
import { timeText } from './words.js';

export type Tone = 'ok' | 'warning' | 'critical' | 'quiet';

/** A time, readable by people and programs. */
export function Moment({ atMs }: { readonly atMs: number }): VNode {
  return <time datetime={isoTime(atMs)}>{timeText(atMs)}</time>;
}

/** Text that a host or a publisher chose: a name, a line, a label. */
export function UntrustedText({ text }: { readonly text: string }): VNode {
  return <bdi class="foreign">{printable(text)}</bdi>;
}

/** A coloured label. Its text alone has the full meaning, for readers who do not see the colour. */
export function Badge({ tone, text }: { readonly tone: Tone; readonly text: string }): VNode {
  return <span class={`badge ${tone}`}>{text}</span>;
}

/** A part of a page under a heading that names it. */
export function Section(props: {
  readonly id: string;
  readonly title: string;
  readonly children: ComponentChildren;
}): VNode {
  return (
    <section aria-labelledby={props.id}>
      <h2 id={props.id}>{props.title}</h2>
      {props.children}
    </section>
  );
}

export type TableColumn = string | { readonly right: string };

/** Heading that a narrow screen shows before the cell. */
function nameOf(column: TableColumn | undefined): string | undefined {
  return typeof column === 'object' ? column.right : column;
}

/**
 * A table that scrolls inside its own frame on a narrow screen, by keyboard too.
 * @param caption title for screen readers
 */
export function Table(props: {
  readonly caption: string;
  readonly columns: readonly TableColumn[];
  readonly rows: readonly (readonly ComponentChildren[])[];
}): VNode {
  const { caption, columns, rows } = props;
  const isRight = (index: number): boolean => typeof columns[index] !== 'string';
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: without a mouse, the arrow keys scroll it
    <section class="scroll" aria-label={caption} tabIndex={0}>
      <table>
        <caption class="hidden">{caption}</caption>
        <thead>
          <tr>
            {columns.map((column, index) => (
              <th scope="col" class={isRight(index) ? 'right' : undefined}>
                {typeof column === 'string' ? column : column.right}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>
              {row.map((cell, index) =>
                index === 0 ? (
                  <th scope="row">{cell}</th>
                ) : (
                  <td class={isRight(index) ? 'right' : undefined} data-label={nameOf(columns[index])}>
                    {cell}
                  </td>
                ),
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
