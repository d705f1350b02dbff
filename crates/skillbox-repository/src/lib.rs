mod contained;
mod listing;
mod parallel;
mod stamp;
