package deliver

// ChannelDeleted is the recorded reason of deliveries that were cancelled with their channel.
const ChannelDeleted = "the channel was deleted"
