// Requests that come as a Poisson process. k6's schedules are even, so it only says how many come:
// time is cut into blocks, a Poisson count is drawn for each, k6 starts so many iterations in it, and
// each waits for a moment of its own, evenly random, in the block that follows. Counts that are
// Poisson's and independent, at times that are uniform, are the process exactly.

const BLOCK_MS = 100;
// Each is a stage of k6's schedule. A phase of more than six minutes has longer ones.
const MOST_BLOCKS = 3600;
// The product of so many uniform numbers is still a number above 0.
const LARGEST_MEAN = 500;
// Of how many there may be at a time, above the mean.
const DEVIATIONS = 4;

/** How long a phase's blocks are, in ms. */
export const blockMs = ({ starts_ms: starts, ends_ms: ends }) => {
  const length = ends - starts;
  return length / Math.min(Math.ceil(length / BLOCK_MS), MOST_BLOCKS);
};

/** How much earlier k6 starts such a phase's scenario: its iterations wait for the next block. */
export const leadMs = (phase) => 1.5 * blockMs(phase);

/** Users under way where `rate` a second come and each takes so long. */
export function usersByChance(phase, rate, seconds) {
  const mean = rate * (seconds + 2 * blockMs(phase) / 1000);
  return Math.ceil(mean + DEVIATIONS * Math.sqrt(mean));
}

// Knuth, The Art of Computer Programming 2, 3.4.1.
function poisson(mean) {
  if (mean > LARGEST_MEAN) return poisson(mean / 2) + poisson(mean / 2);
  const least = Math.exp(-mean);
  let count = 0;
  for (let product = Math.random(); product > least; product *= Math.random()) count += 1;
  return count;
}

/** The options of k6's ramping-arrival-rate for such a phase. */
export function schedule(phase) {
  const block = blockMs(phase);
  const unit = `${block}ms`;
  const mean = phase.value * block / 1000;
  const blocks = Math.round((phase.ends_ms - phase.starts_ms) / block);
  const counts = Array.from({ length: blocks }, () => poisson(mean));
  // A jump to the block's count, and the block. Half an iteration before all moves each of them half
  // of its distance off the edges; at the end there is time for those that start late.
  const stages = [...counts, 0].flatMap((target) => [{ target, duration: '0s' }, { target, duration: unit }]);
  return {
    startRate: 1,
    timeUnit: unit,
    stages: [{ target: 1, duration: `${block / 2}ms` }, ...stages],
  };
}

/** What a user needs to find the moment of its request: `byChance` in load.js. */
export const blocksOf = (phase) => {
  const block_ms = blockMs(phase);
  return { block_ms, shift_ms: 0, length_ms: phase.ends_ms - phase.starts_ms + 1.5 * block_ms };
};
