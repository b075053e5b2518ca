// SPDX-License-Identifier: MIT
// Whether the server answers, and whether a trace is still what was opened.
import { announce, button } from './dom';
import { settle } from './emitter';
import type { Notice } from './notice';
import type { Session } from './session';
import { sleep, type Experiment } from './tsp';

/** The page, as far as it has to do with that. */
export interface Watched {
  readonly notice: Notice;
  /** The server is back. */
  retry(): void;
  /** The trace is another one than before. */
  reopen(now: Experiment): Promise<void>;
  /** There is more of it, which can be shown. */
  grown(now: Experiment): Promise<void> | void;
}

export function keepWatch(session: Session, page: Watched): void {
  const { client } = session;
  let asking = false;

  /** A trace that was cut off is opened again by the server, from what is left: with other rows, so everything here is
   * asked for anew. One that has grown is offered. */
  const look = async (): Promise<void> => {
    const had = session.experiment;
    if (!had) return;
    try {
      let now = await client.experiment(had.UUID);
      for (let ms = 200; now.indexingStatus === 'RUNNING' && !now.version; ms = Math.min(2000, ms * 1.5)) {
        await sleep(ms);
        now = await client.experiment(had.UUID);
      }
      if (session.experiment !== had || (now.nbEvents === had.nbEvents && now.start === had.start
        && now.end === had.end))
        return;
      await (now.version ? page.grown(now) : page.reopen(now));
    } catch { /* what failed says so itself */ }
  };

  const askUntilBack = async (): Promise<void> => {
    if (asking) return;
    asking = true;
    for (let ms = 1000; ; ms = Math.min(8000, ms * 1.4)) {
      await sleep(ms);
      try { await client.health(); break; } catch { /* still away */ }
    }
    asking = false;
  };

  client.onDoubt = settle(() => void look(), 200, 1000);
  client.onReachable = (up, why) => {
    if (up) {
      page.notice.hush();
      announce('the server answers again');
      void look(); // with what it finds now
      page.retry();
      return;
    }
    page.notice.say(`The server does not answer (${why}). What was loaded stays; the page asks again by itself.`,
      button('Try again', 'Ask the server now', () => void client.health().catch(() => { /* still away */ })));
    void askUntilBack();
  };
}
